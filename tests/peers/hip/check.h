// What the HIP programs of this directory share. They are plain HIP: the same sources run on AMD's
// library and on any other that exports its names.
#pragma once
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define HIP(call)                                                                          \
    do {                                                                                   \
        hipError_t error_ = (call);                                                        \
        if (error_ != hipSuccess) {                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,             \
                         hipGetErrorName(error_));                                         \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

inline void passed(const char *what) {
    std::printf("%s: passed\n", what);
    std::fflush(stdout);
}
