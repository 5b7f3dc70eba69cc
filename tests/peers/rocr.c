// AMD's HSA runtime, round and round: hsa_init, a queue, a barrier packet, kernel dispatches, a
// signal, hsa_shut_down. Takes how often, and a code object of `add_one.cl` for the GPU.
#include <hsa/hsa.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#define HSA(call)                                                                  \
    do {                                                                           \
        hsa_status_t status_ = (call);                                             \
        if (status_ != HSA_STATUS_SUCCESS && status_ != HSA_STATUS_INFO_BREAK) {   \
            const char *text_ = "";                                                \
            hsa_status_string(status_, &text_);                                    \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_);  \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

static hsa_agent_t gpu;
static hsa_region_t arguments, fine;

static hsa_status_t agent_of(hsa_agent_t agent, void *found) {
    hsa_device_type_t type;
    hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
    gpu = agent;
    *(int *)found = 1;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t region_of(hsa_region_t region, void *unused) {
    (void)unused;
    hsa_region_segment_t segment;
    hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment);
    if (segment != HSA_REGION_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
    uint32_t flags;
    hsa_region_get_info(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags);
    if (flags & HSA_REGION_GLOBAL_FLAG_KERNARG) arguments = region;
    if (flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED) fine = region;
    return HSA_STATUS_SUCCESS;
}

static void wait_for(hsa_signal_t signal) {
    hsa_signal_value_t value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                                         20000000000ull, HSA_WAIT_STATE_BLOCKED);
    if (value != 0) {
        fprintf(stderr, "the signal is %ld after 20 s\n", (long)value);
        exit(1);
    }
}

static void publish(hsa_queue_t *queue, uint64_t index, const void *packet, uint16_t header, uint16_t setup) {
    char *slot = (char *)queue->base_address + (index & (queue->size - 1)) * 64;
    memcpy(slot + 4, (const char *)packet + 4, 60);
    __atomic_store_n((uint32_t *)slot, header | (uint32_t)setup << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static const uint16_t system_scope = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                     HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

static void once(const char *file) {
    int found = 0;
    HSA(hsa_init());
    HSA(hsa_iterate_agents(agent_of, &found));
    if (!found) {
        fprintf(stderr, "there is no GPU agent\n");
        exit(1);
    }
    HSA(hsa_agent_iterate_regions(gpu, region_of, NULL));
    hsa_queue_t *queue;
    HSA(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    hsa_signal_t signal;
    HSA(hsa_signal_create(1, 0, NULL, &signal));

    hsa_barrier_and_packet_t barrier = {.completion_signal = signal};
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    publish(queue, index, &barrier, HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE | system_scope, 0);
    wait_for(signal);

    int fd = open(file, O_RDONLY);
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    HSA(hsa_code_object_reader_create_from_file(fd, &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    HSA(hsa_executable_freeze(executable, NULL));
    hsa_executable_symbol_t symbol;
    HSA(hsa_executable_get_symbol_by_name(executable, "add_one.kd", &gpu, &symbol));
    uint64_t object;
    uint32_t group, private, bytes;
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &bytes));
    int *data;
    char *segment;
    HSA(hsa_memory_allocate(fine, 1024 * sizeof *data, (void **)&data));
    HSA(hsa_memory_allocate(arguments, bytes < 64 ? 64 : bytes, (void **)&segment));
    for (int i = 0; i < 1024; i++) data[i] = i;
    memset(segment, 0, bytes);
    memcpy(segment, &data, 8);
    hsa_signal_store_relaxed(signal, 3);
    hsa_kernel_dispatch_packet_t dispatch = {
        .workgroup_size_x = 64, .workgroup_size_y = 1, .workgroup_size_z = 1,
        .grid_size_x = 1024, .grid_size_y = 1, .grid_size_z = 1,
        .private_segment_size = private, .group_segment_size = group,
        .kernel_object = object, .kernarg_address = segment, .completion_signal = signal,
    };
    for (int i = 0; i < 3; i++) {
        index = hsa_queue_add_write_index_relaxed(queue, 1);
        publish(queue, index, &dispatch,
                HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER | system_scope,
                1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS);
    }
    wait_for(signal);
    for (int i = 0; i < 1024; i++) {
        if (data[i] != i + 3) {
            fprintf(stderr, "element %d is %d\n", i, data[i]);
            exit(1);
        }
    }
    HSA(hsa_memory_free(data));
    HSA(hsa_memory_free(segment));
    HSA(hsa_executable_destroy(executable));
    HSA(hsa_code_object_reader_destroy(reader));
    close(fd);
    HSA(hsa_signal_destroy(signal));
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
}

int main(int count, char **words) {
    (void)count;
    int rounds = atoi(words[1]);
    for (int i = 0; i < rounds; i++) once(words[2]);
    printf("%d rounds: passed\n", rounds);
    return 0;
}
