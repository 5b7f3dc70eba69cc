// What a kernel asks of the host: printf, malloc, assert.
#include "check.h"
#include <assert.h>

__global__ void print() {
    printf("thread %d of block %d says %s, %5.2f, %lx\n", (int)threadIdx.x, (int)blockIdx.x, "hello",
           threadIdx.x * 0.5, 0x123456789abcul);
}

__global__ void allocate(int **places, int *sums) {
    int *mine = (int *)malloc(64);
    places[threadIdx.x] = mine;
    if (!mine) return;
    for (int i = 0; i < 16; i++) mine[i] = threadIdx.x * 100 + i;
    int sum = 0;
    for (int i = 0; i < 16; i++) sum += mine[i];
    sums[threadIdx.x] = sum;
    free(mine);
}

__global__ void fail(int limit) { assert((int)threadIdx.x < limit && "too many threads"); }

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "printf";
    if (!std::strcmp(what, "printf")) {
        print<<<2, 3>>>();
        HIP(hipDeviceSynchronize());
        passed("printf");
    } else if (!std::strcmp(what, "malloc")) {
        int **places, *sums, host[32];
        int *held[32];
        HIP(hipMalloc(&places, sizeof held));
        HIP(hipMalloc(&sums, sizeof host));
        allocate<<<1, 32>>>(places, sums);
        HIP(hipDeviceSynchronize());
        HIP(hipMemcpy(held, places, sizeof held, hipMemcpyDeviceToHost));
        HIP(hipMemcpy(host, sums, sizeof host, hipMemcpyDeviceToHost));
        for (int i = 0; i < 32; i++) CHECK(held[i] != nullptr && host[i] == i * 1600 + 120);
        passed("malloc");
    } else {
        // Ends the process: whoever started it looks at how.
        fail<<<1, 64>>>(60);
        hipError_t error = hipDeviceSynchronize();
        std::printf("after the assertion: %s\n", hipGetErrorName(error));
    }
    return 0;
}
