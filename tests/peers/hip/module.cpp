// Loads a code object at run time and launches from it: module.cpp's own kernels, from the file that
// the command line names.
#include "check.h"

#ifdef DEVICE_PART
__device__ int offset_of_all = 5;
extern "C" __global__ void shift(int *data, int by, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += by + offset_of_all;
}
#else
int main(int, char **arguments) {
    HIP(hipInit(0));
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoad(&module, arguments[1]));
    HIP(hipModuleGetFunction(&function, module, "shift"));
    hipFunction_t missing;
    CHECK(hipModuleGetFunction(&missing, module, "no_such_kernel") == hipErrorNotFound);
    hipDeviceptr_t global;
    size_t bytes;
    HIP(hipModuleGetGlobal(&global, &bytes, module, "offset_of_all"));
    CHECK(bytes == 4);
    int value = 0;
    HIP(hipMemcpyDtoH(&value, global, 4));
    CHECK(value == 5);
    value = 1000;
    HIP(hipMemcpyHtoD(global, &value, 4));
    const int count = 1000;
    int *data, host[count];
    HIP(hipMalloc(&data, sizeof host));
    for (int i = 0; i < count; i++) host[i] = i;
    HIP(hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice));
    int by = 20, n = count;
    void *parameters[] = {&data, &by, &n};
    HIP(hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, parameters, nullptr));
    HIP(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) CHECK(host[i] == i + 1020);
    HIP(hipFree(data));
    HIP(hipModuleUnload(module));
    passed("module");
    return 0;
}
#endif
