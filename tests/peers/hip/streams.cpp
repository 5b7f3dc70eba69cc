// Streams, events, callbacks, pinned memory, and memcpy and memset in all directions.
#include "check.h"
#include <vector>

__global__ void scale(int *data, int by, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] *= by;
}

static void called(hipStream_t, hipError_t status, void *flag) { *(int *)flag = status == hipSuccess ? 7 : 8; }

int main() {
    const int count = 4096, bytes = count * 4;
    hipStream_t one, two;
    HIP(hipStreamCreate(&one));
    HIP(hipStreamCreateWithFlags(&two, hipStreamNonBlocking));
    int *pinned, *device, *other;
    HIP(hipHostMalloc(&pinned, bytes, 0));
    HIP(hipMalloc(&device, bytes));
    HIP(hipMalloc(&other, bytes));
    for (int i = 0; i < count; i++) pinned[i] = i;
    hipEvent_t begin, end;
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    HIP(hipEventRecord(begin, one));
    HIP(hipMemcpyAsync(device, pinned, bytes, hipMemcpyHostToDevice, one));
    scale<<<count / 256, 256, 0, one>>>(device, 3, count);
    HIP(hipEventRecord(end, one));
    HIP(hipStreamWaitEvent(two, end, 0));
    scale<<<count / 256, 256, 0, two>>>(device, 5, count);
    HIP(hipMemcpyAsync(other, device, bytes, hipMemcpyDeviceToDevice, two));
    int flag = 0;
    HIP(hipStreamAddCallback(two, called, &flag, 0));
    HIP(hipStreamSynchronize(two));
    HIP(hipMemset(device, 0x5a, bytes));
    std::vector<int> back(count);
    HIP(hipMemcpy(back.data(), other, bytes, hipMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) CHECK(back[i] == i * 15);
    HIP(hipMemcpy(back.data(), device, bytes, hipMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) CHECK(back[i] == 0x5a5a5a5a);
    CHECK(flag == 7);
    float milliseconds = -1;
    HIP(hipEventSynchronize(end));
    HIP(hipEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds >= 0 && milliseconds < 60000);
    CHECK(hipEventQuery(end) == hipSuccess && hipStreamQuery(one) == hipSuccess);
    passed("streams and events");

    // Unaligned sizes and places, host to host, two and one dimensions.
    std::vector<char> from(100003), to(100003);
    for (size_t i = 0; i < from.size(); i++) from[i] = char(i * 31 + 7);
    char *bytes_on_device;
    HIP(hipMalloc(&bytes_on_device, 200000));
    HIP(hipMemset(bytes_on_device, 0, 200000));
    HIP(hipMemcpy(bytes_on_device + 3, from.data(), from.size(), hipMemcpyHostToDevice));
    HIP(hipMemcpy(bytes_on_device + 100007, bytes_on_device + 3, 90001, hipMemcpyDeviceToDevice));
    HIP(hipMemcpy(to.data(), bytes_on_device + 100007, 90001, hipMemcpyDeviceToHost));
    CHECK(std::memcmp(from.data(), to.data(), 90001) == 0);
    HIP(hipMemcpy(to.data(), from.data(), from.size(), hipMemcpyHostToHost));
    CHECK(from == to);
    HIP(hipMemcpy2D(bytes_on_device, 512, from.data(), 100, 100, 50, hipMemcpyHostToDevice));
    HIP(hipMemcpy2D(to.data(), 200, bytes_on_device, 512, 100, 50, hipMemcpyDeviceToHost));
    for (int row = 0; row < 50; row++) CHECK(std::memcmp(&from[row * 100], &to[row * 200], 100) == 0);
    HIP(hipMemsetD32((hipDeviceptr_t)bytes_on_device, 0x12345678, 1000));
    HIP(hipMemsetD8((hipDeviceptr_t)(bytes_on_device + 5), 0xee, 3));
    HIP(hipMemcpyDtoH(to.data(), (hipDeviceptr_t)bytes_on_device, 12));
    CHECK(std::memcmp(to.data(), "\x78\x56\x34\x12\x78\xee\xee\xee\x78\x56\x34\x12", 12) == 0);
    passed("memcpy and memset");

    // The device writes into pinned memory that the host reads, and into registered memory.
    int *seen;
    HIP(hipHostGetDevicePointer((void **)&seen, pinned, 0));
    for (int i = 0; i < count; i++) pinned[i] = i;
    scale<<<count / 256, 256>>>(seen, -2, count);
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < count; i++) CHECK(pinned[i] == i * -2);
    int *own = (int *)aligned_alloc(4096, bytes);
    for (int i = 0; i < count; i++) own[i] = i;
    HIP(hipHostRegister(own, bytes, 0));
    HIP(hipHostGetDevicePointer((void **)&seen, own, 0));
    scale<<<count / 256, 256>>>(seen, 9, count);
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < count; i++) CHECK(own[i] == i * 9);
    HIP(hipHostUnregister(own));
    free(own);
    passed("pinned and registered memory");

    HIP(hipFree(bytes_on_device));
    HIP(hipFree(device));
    HIP(hipFree(other));
    HIP(hipHostFree(pinned));
    HIP(hipEventDestroy(begin));
    HIP(hipEventDestroy(end));
    HIP(hipStreamDestroy(one));
    HIP(hipStreamDestroy(two));
    return 0;
}
