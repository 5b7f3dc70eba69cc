// What KFD answers where no GPU is needed: about 170 calls, one line each.
//
// The program uses the C library alone. It is built statically for a virtual machine with a stock
// kernel, and dynamically for the software KFD; the lines must be the same. Numbers that a kernel
// chooses freely (clocks, pids, memory sizes, mmap offsets) are printed as what they are, not as
// numbers. Layouts: include/uapi/linux/kfd_ioctl.h of Linux 6.12.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RW 3u
#define R 2u
#define W 1u
#define REQUEST(direction, number, bytes) ((direction) << 30 | (unsigned)(bytes) << 16 | 'K' << 8 | (number))

struct version { uint32_t major, minor; };
struct create_event {
    uint64_t page_offset; uint32_t trigger, type, auto_reset, node, id, slot;
};
struct event_id { uint32_t id, pad; };
struct event_data { uint64_t age, rest[3], ext; uint32_t id, pad; };
struct wait_events { uint64_t events; uint32_t count, all, timeout, result; };
struct create_queue {
    uint64_t ring, wptr, rptr, doorbell; uint32_t ring_bytes, gpu, type, percentage, priority, id;
    uint64_t eop, eop_bytes, cwsr; uint32_t cwsr_bytes, stack_bytes, engine, pad;
};
struct alloc { uint64_t va, bytes, handle, offset; uint32_t gpu, flags; };
struct map { uint64_t handle, ids; uint32_t count, done; };
struct apertures { uint64_t list; uint32_t count, pad; };

static int kfd = -1;

static const char *name_of(int error) {
    static char other[32];
    switch (error) {
    case 0: return "ok";
    case EPERM: return "EPERM";
    case ENOENT: return "ENOENT";
    case ESRCH: return "ESRCH";
    case EINTR: return "EINTR";
    case EIO: return "EIO";
    case EBADF: return "EBADF";
    case EAGAIN: return "EAGAIN";
    case ENOMEM: return "ENOMEM";
    case EACCES: return "EACCES";
    case EFAULT: return "EFAULT";
    case EBUSY: return "EBUSY";
    case EEXIST: return "EEXIST";
    case ENODEV: return "ENODEV";
    case ENOTDIR: return "ENOTDIR";
    case EISDIR: return "EISDIR";
    case EINVAL: return "EINVAL";
    case ENOTTY: return "ENOTTY";
    case ENOSPC: return "ENOSPC";
    case ESPIPE: return "ESPIPE";
    case EALREADY: return "EALREADY";
    default: snprintf(other, sizeof other, "errno %d", error); return other;
    }
}

static int *line; // shared with children
static void say(const char *what, int result, const char *more) {
    int error = result < 0 ? errno : 0;
    printf("%03d %s: %s%s%s\n", ++*line, what, name_of(error), more[0] ? ", " : "", more);
    fflush(stdout);
}

static char text[256];
#define SAY(what, result, ...) do { \
        int result_ = (int)(result); int error_ = errno; \
        snprintf(text, sizeof text, __VA_ARGS__); errno = error_; say(what, result_, text); } while (0)

static int call(unsigned direction, unsigned number, void *args, size_t bytes) {
    return ioctl(kfd, REQUEST(direction, number, bytes), args);
}

static int create(struct create_event *event, uint32_t type, uint32_t auto_reset) {
    *event = (struct create_event){.type = type, .auto_reset = auto_reset};
    return call(RW, 0x08, event, sizeof *event);
}

static int on_event(unsigned number, uint32_t id) {
    struct event_id args = {.id = id};
    return call(W, number, &args, sizeof args);
}
#define DESTROY 0x09
#define SET 0x0a
#define RESET 0x0b

static struct wait_events waited;
static struct event_data data[8];
static int wait_for(uint32_t count, uint32_t all, uint32_t timeout) {
    waited = (struct wait_events){(uintptr_t)data, count, all, timeout, 77};
    return call(RW, 0x0c, &waited, sizeof waited);
}
static int wait_one(uint32_t id, uint32_t timeout) {
    memset(data, 0, sizeof data);
    data[0].id = id;
    return wait_for(1, 0, timeout);
}
#define WAIT(what, outcome) do { int r_ = (outcome); SAY(what, r_, "result %u", waited.result); } while (0)

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void versions(void) {
    uint32_t words[16];
    struct version version = {0};
    int result = call(R, 0x01, &version, sizeof version);
    SAY("GET_VERSION", result, "%u.%u", version.major, version.minor);
    SAY("GET_VERSION of a null pointer", call(R, 0x01, NULL, 8), "%s", "");
    memset(words, 0xab, sizeof words);
    result = call(R, 0x01, words, 4);
    SAY("GET_VERSION of 4 bytes", result, "%x %x", words[0], words[1]);
    memset(words, 0xab, sizeof words);
    result = call(R, 0x01, words, 32);
    SAY("GET_VERSION of 32 bytes", result, "%x %x %x", words[2], words[7], words[8]);
    memset(words, 0xab, sizeof words);
    result = call(W, 0x01, words, 8);
    SAY("GET_VERSION with the direction of writing", result, "%x", words[0]);
    memset(words, 0xab, sizeof words);
    result = ioctl(kfd, 0u << 30 | 'K' << 8 | 1, words);
    SAY("GET_VERSION without a size", result, "%x", words[0]);
    memset(words, 0xab, sizeof words);
    result = ioctl(kfd, R << 30 | 8u << 16 | 'Q' << 8 | 1, words);
    SAY("GET_VERSION with another type", result, "%x", words[0]);
    SAY("TCGETS", ioctl(kfd, 0x5401, words), "%s", "");
    static const unsigned unknown[] = {0x00, 0x27, 0x28, 0x30, 0x7f, 0x80, 0x82, 0xff};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        SAY("unknown number", call(RW, unknown[i], words, 8), "%02x", unknown[i]);
    for (unsigned number = 0x0d; number <= 0x10; number++)
        SAY("the old debugger's", call(W, number, words, 16), "%02x", number);
}

static void openings(void) {
    struct stat status;
    int fd = open("/dev/kfd", O_RDONLY);
    SAY("open for reading", fd, "%s", "");
    char byte = 0;
    SAY("read", read(fd, &byte, 1), "%s", "");
    close(fd);
    fd = open("/dev/kfd", O_WRONLY);
    SAY("open for writing", fd, "%s", "");
    SAY("write", write(fd, &byte, 1), "%s", "");
    close(fd);
    SAY("close twice", close(fd), "%s", "");
    SAY("ioctl after close", ioctl(fd, REQUEST(R, 1, 8), &byte), "%s", "");
    SAY("open as a directory", open("/dev/kfd", O_RDWR | O_DIRECTORY), "%s", "");
    SAY("open something below", open("/dev/kfd/x", O_RDWR), "%s", "");
    int result = stat("/dev/kfd", &status);
    SAY("stat", result, "character device %d, minor %d", S_ISCHR(status.st_mode), (int)(status.st_rdev & 0xff));
    result = fstat(kfd, &status);
    SAY("fstat", result, "character device %d, minor %d", S_ISCHR(status.st_mode), (int)(status.st_rdev & 0xff));
    SAY("access for reading and writing", access("/dev/kfd", R_OK | W_OK), "%s", "");
    SAY("readlink", readlink("/dev/kfd", text, 8), "%s", "");
    fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    SAY("open a second time", fd, "close-on-exec %d", fcntl(fd, F_GETFD) & FD_CLOEXEC);
    struct version version = {0};
    int copy = dup(fd);
    close(fd);
    result = ioctl(copy, REQUEST(R, 1, 8), &version);
    SAY("GET_VERSION of a duplicate", result, "major %u", version.major);
    int other = fcntl(copy, F_DUPFD_CLOEXEC, 100);
    SAY("fcntl duplicates", other, "at least 100: %d", other >= 100);
    SAY("GET_VERSION of that", ioctl(other, REQUEST(R, 1, 8), &version), "%s", "");
    int null = open("/dev/null", O_RDWR);
    dup2(null, copy);
    SAY("GET_VERSION after another file took its place", ioctl(copy, REQUEST(R, 1, 8), &version), "%s", "");
    dup2(other, null);
    SAY("GET_VERSION after it took another's place", ioctl(null, REQUEST(R, 1, 8), &version), "%s", "");
    close(null);
    close(other);
    close(copy);
}

static void line_names(const char *path) {
    FILE *file = fopen(path, "r");
    SAY(path, file ? 0 : -1, "%s", "");
    char line[512], *name;
    int count = 0;
    while (file && fgets(line, sizeof line, file)) {
        name = strtok(line, " \n");
        printf("    %s\n", name ? name : "(empty)");
        count++;
    }
    printf("    lines: %d\n", count);
    if (file) fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void entries(const char *path) {
    struct dirent **list;
    int count = scandir(path, &list, NULL, by_name);
    SAY(path, count, "%s", "");
    for (int i = 0; i < count; i++)
        if (list[i]->d_name[0] != '.') printf("    %s\n", list[i]->d_name);
}

#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

static void content(const char *path) {
    char line[128] = "";
    int fd = open(path, O_RDONLY);
    int result = fd < 0 ? fd : (int)read(fd, line, sizeof line - 1);
    line[strcspn(line, "\n")] = 0;
    SAY(path, result, "%d bytes, %s", result, line);
    if (fd >= 0) close(fd);
}

static void sysfs(void) {
    entries("/sys/class/kfd");
    entries("/sys/class/kfd/kfd/topology");
    entries(TOPOLOGY "/nodes");
    entries(TOPOLOGY "/nodes/0");
    entries(TOPOLOGY "/nodes/0/mem_banks");
    entries(TOPOLOGY "/nodes/0/caches");
    entries(TOPOLOGY "/nodes/0/io_links");
    entries(TOPOLOGY "/nodes/0/p2p_links");
    entries(TOPOLOGY "/nodes/1");
    content(TOPOLOGY "/generation_id");
    content(TOPOLOGY "/nodes/0/gpu_id");
    content(TOPOLOGY "/nodes/0/name");
    line_names(TOPOLOGY "/system_properties");
    line_names(TOPOLOGY "/nodes/0/properties");
    line_names(TOPOLOGY "/nodes/0/mem_banks/0/properties");
    content(TOPOLOGY "/nodes/0");
    SAY("a sysfs file for writing, as root", open(TOPOLOGY "/generation_id", O_WRONLY), "%s", "");
    SAY("access to a sysfs file for reading", access(TOPOLOGY "/generation_id", R_OK), "%s", "");
    struct stat status;
    int result = stat(TOPOLOGY "/generation_id", &status);
    SAY("stat of a sysfs file", result, "mode %o", status.st_mode);
    result = stat(TOPOLOGY "/nodes", &status);
    SAY("stat of a sysfs directory", result, "mode %o", status.st_mode);
    result = lstat("/sys/class/kfd/kfd", &status);
    SAY("lstat of the class link", result, "link %d", S_ISLNK(status.st_mode));
    char target[256] = "";
    result = (int)readlink("/sys/class/kfd/kfd", target, sizeof target - 1);
    SAY("readlink of the class link", result, "%s", target);
    char *real = realpath("/sys/class/kfd/kfd/topology/nodes/0", NULL);
    SAY("realpath through it", real ? 0 : -1, "%s", real ? real : "");
    char own[128];
    snprintf(own, sizeof own, "/sys/class/kfd/kfd/proc/%d", getpid());
    SAY("this process in sysfs", access(own, F_OK), "%s", "");
    strcat(own, "/queues");
    SAY("its queues", access(own, F_OK), "%s", "");
    SAY("render nodes", open("/dev/dri/renderD128", O_RDWR), "%s", "");
}

static void devices(void) {
    uint64_t words[64];
    struct apertures apertures = {0};
    int result = call(RW, 0x14, &apertures, sizeof apertures);
    SAY("GET_PROCESS_APERTURES_NEW counts", result, "%u", apertures.count);
    apertures = (struct apertures){(uintptr_t)words, 1, 0};
    result = call(RW, 0x14, &apertures, sizeof apertures);
    SAY("GET_PROCESS_APERTURES_NEW of 1", result, "%u", apertures.count);
    apertures = (struct apertures){(uintptr_t)words, 8, 0};
    result = call(RW, 0x14, &apertures, sizeof apertures);
    SAY("GET_PROCESS_APERTURES_NEW of 8", result, "%u", apertures.count);
    apertures = (struct apertures){0, 8, 0};
    SAY("GET_PROCESS_APERTURES_NEW of 8 at null", call(RW, 0x14, &apertures, sizeof apertures), "%s", "");
    memset(words, 0xff, sizeof words);
    result = call(R, 0x06, words, 400);
    SAY("GET_PROCESS_APERTURES", result, "%u nodes", (unsigned)words[49]);

    uint32_t pair[2] = {(uint32_t)-1, 1};
    SAY("ACQUIRE_VM of no file", call(W, 0x15, pair, 8), "%s", "");
    pair[0] = (uint32_t)kfd;
    SAY("ACQUIRE_VM of /dev/kfd", call(W, 0x15, pair, 8), "%s", "");
    pair[1] = 0;
    SAY("ACQUIRE_VM of GPU 0", call(W, 0x15, pair, 8), "%s", "");

    static const uint32_t gpus[] = {0, 1, 0xffffffff};
    for (int i = 0; i < 3; i++) {
        struct { uint64_t gpu, cpu, system, freq; uint32_t id, pad; } clocks = {.gpu = 9, .id = gpus[i]};
        result = call(RW, 0x05, &clocks, sizeof clocks);
        SAY("GET_CLOCK_COUNTERS", result, "gpu %d, cpu runs %d, frequency %d", (int)clocks.gpu,
            clocks.cpu > 0 && clocks.system > 0, (int)clocks.freq);
        struct { uint64_t base, bytes; uint32_t gpu, normal, other, pad; } policy = {.gpu = gpus[i]};
        SAY("SET_MEMORY_POLICY", call(W, 0x04, &policy, sizeof policy), "%s", "");
        policy.normal = 2;
        SAY("SET_MEMORY_POLICY of an unknown policy", call(W, 0x04, &policy, sizeof policy), "%s", "");
        struct { uint64_t va; uint32_t gpu, pad; } scratch = {.gpu = gpus[i]};
        SAY("SET_SCRATCH_BACKING_VA", call(RW, 0x11, &scratch, sizeof scratch), "%s", "");
        struct { uint64_t tile, macro; uint32_t tiles, macros, gpu, config, banks, ranks; } tile = {.gpu = gpus[i]};
        SAY("GET_TILE_CONFIG", call(RW, 0x12, &tile, sizeof tile), "%s", "");
        struct { uint64_t tba, tma; uint32_t gpu, pad; } trap = {.gpu = gpus[i]};
        SAY("SET_TRAP_HANDLER", call(W, 0x13, &trap, sizeof trap), "%s", "");
        struct { uint64_t available; uint32_t gpu, pad; } memory = {.gpu = gpus[i]};
        SAY("AVAILABLE_MEMORY", call(RW, 0x23, &memory, sizeof memory), "%s", "");
        struct { uint32_t gpu, fd; } smi = {.gpu = gpus[i]};
        SAY("SMI_EVENTS", call(RW, 0x1f, &smi, sizeof smi), "%s", "");
    }
    struct { uint64_t bytes, metadata; uint32_t room, gpu, flags, fd; } info = {.fd = (uint32_t)-1};
    SAY("GET_DMABUF_INFO of no file", call(RW, 0x1c, &info, sizeof info), "%s", "");
    struct { uint64_t va, handle; uint32_t gpu, fd; } import = {.gpu = 1, .fd = (uint32_t)kfd};
    SAY("IMPORT_DMABUF", call(RW, 0x1d, &import, sizeof import), "%s", "");
    struct { uint64_t handle; uint32_t flags, fd; } export = {.handle = 1ull << 32};
    SAY("EXPORT_DMABUF", call(RW, 0x24, &export, sizeof export), "%s", "");
}

static void memory(void) {
    static const struct { const char *what; uint64_t bytes; uint32_t gpu, flags; } all[] = {
        {"ALLOC of VRAM", 4096, 1, 0x80000001},   {"ALLOC of GTT", 4096, 1, 0x80000002},
        {"ALLOC of user memory", 4096, 1, 0x80000004}, {"ALLOC of doorbells", 8192, 1, 0x80000008},
        {"ALLOC of the MMIO page", 4096, 1, 0x80000010}, {"ALLOC on GPU 0", 4096, 0, 0x80000002},
        {"ALLOC of nothing", 0, 1, 0x80000002},    {"ALLOC without a type", 4096, 1, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct alloc args = {0x100000, all[i].bytes, 0, 0, all[i].gpu, all[i].flags};
        SAY(all[i].what, call(RW, 0x16, &args, sizeof args), "%s", "");
    }
    uint64_t handle = 1ull << 32;
    SAY("FREE", call(W, 0x17, &handle, 8), "%s", "");
    handle = 0;
    SAY("FREE of 0", call(W, 0x17, &handle, 8), "%s", "");
    uint32_t ids[2] = {1, 2};
    for (unsigned number = 0x18; number <= 0x19; number++) {
        const char *what = number == 0x18 ? "MAP" : "UNMAP";
        struct map map = {1ull << 32, (uintptr_t)ids, 0, 0};
        SAY(what, call(RW, number, &map, sizeof map), "no devices");
        map = (struct map){1ull << 32, (uintptr_t)ids, 1, 2};
        SAY(what, call(RW, number, &map, sizeof map), "more done than there are");
        map = (struct map){1ull << 32, 0, 1, 0};
        SAY(what, call(RW, number, &map, sizeof map), "ids at null");
        map = (struct map){1ull << 32, (uintptr_t)ids, 2, 0};
        SAY(what, call(RW, number, &map, sizeof map), "no such handle");
    }
}

static int queue(void (*change)(struct create_queue *)) {
    static char page[8192];
    uintptr_t at = (uintptr_t)page;
    struct create_queue args = {.ring = at, .wptr = at, .rptr = at + 8, .ring_bytes = 4096, .gpu = 1,
        .type = 2, .percentage = 100, .priority = 7};
    if (change) change(&args);
    return call(RW, 0x02, &args, sizeof args);
}
static void q_percentage(struct create_queue *q) { q->percentage = 101; }
static void q_percentage_xcc(struct create_queue *q) { q->percentage = 0x164; }
static void q_priority(struct create_queue *q) { q->priority = 16; }
static void q_size(struct create_queue *q) { q->ring_bytes = 4097; }
static void q_no_size(struct create_queue *q) { q->ring_bytes = 0; }
static void q_ring(struct create_queue *q) { q->ring = 1ull << 63; }
static void q_no_ring(struct create_queue *q) { q->ring = 0; }
static void q_read(struct create_queue *q) { q->rptr = 1ull << 63; }
static void q_write(struct create_queue *q) { q->wptr = 1ull << 63; }
static void q_eop(struct create_queue *q) { q->eop = 1ull << 63; q->eop_bytes = 4096; }
static void q_save(struct create_queue *q) { q->cwsr = 1ull << 63; q->cwsr_bytes = 4096; }
static void q_type(struct create_queue *q) { q->type = 9; }
static void q_type_first(struct create_queue *q) { q->type = 9; q->priority = 16; }
static void q_sdma(struct create_queue *q) { q->type = 1; }
static void q_gpu(struct create_queue *q) { q->gpu = 0; }

static void queues(void) {
    SAY("CREATE_QUEUE", queue(NULL), "no such GPU");
    SAY("CREATE_QUEUE", queue(q_percentage), "percentage 101");
    SAY("CREATE_QUEUE", queue(q_percentage_xcc), "XCC 1");
    SAY("CREATE_QUEUE", queue(q_priority), "priority 16");
    SAY("CREATE_QUEUE", queue(q_size), "size 4097");
    SAY("CREATE_QUEUE", queue(q_no_size), "size 0");
    SAY("CREATE_QUEUE", queue(q_ring), "ring in the kernel's half");
    SAY("CREATE_QUEUE", queue(q_no_ring), "no ring");
    SAY("CREATE_QUEUE", queue(q_read), "read pointer in the kernel's half");
    SAY("CREATE_QUEUE", queue(q_write), "write pointer in the kernel's half");
    SAY("CREATE_QUEUE", queue(q_eop), "EOP in the kernel's half");
    SAY("CREATE_QUEUE", queue(q_save), "save area in the kernel's half");
    SAY("CREATE_QUEUE", queue(q_type), "type 9");
    SAY("CREATE_QUEUE", queue(q_type_first), "type 9, priority 16");
    SAY("CREATE_QUEUE", queue(q_sdma), "SDMA");
    SAY("CREATE_QUEUE", queue(q_gpu), "GPU 0");
    uint32_t pair[2] = {0, 0};
    SAY("DESTROY_QUEUE", call(RW, 0x03, pair, 8), "%s", "");
    struct { uint64_t ring; uint32_t id, bytes, percentage, priority; } update = {4096, 0, 4096, 100, 7};
    SAY("UPDATE_QUEUE", call(W, 0x07, &update, sizeof update), "%s", "");
    update.percentage = 101;
    SAY("UPDATE_QUEUE", call(W, 0x07, &update, sizeof update), "percentage 101");
    update.percentage = 100, update.priority = 16;
    SAY("UPDATE_QUEUE", call(W, 0x07, &update, sizeof update), "priority 16");
    update.priority = 7, update.bytes = 5000;
    SAY("UPDATE_QUEUE", call(W, 0x07, &update, sizeof update), "size 5000");
    static const uint32_t bits[] = {0, 31, 32, 64, 2048};
    uint32_t mask[64];
    memset(mask, 0xff, sizeof mask);
    for (int i = 0; i < 5; i++) {
        struct { uint32_t id, count; uint64_t mask; } cu = {0, bits[i], (uintptr_t)mask};
        SAY("SET_CU_MASK", call(W, 0x1a, &cu, sizeof cu), "%u bits", bits[i]);
    }
    struct { uint32_t id, count; uint64_t mask; } cu = {0, 32, 0};
    SAY("SET_CU_MASK", call(W, 0x1a, &cu, sizeof cu), "mask at null");
    struct { uint64_t stack; uint32_t used, save, id, pad; } state = {(uintptr_t)mask, 0, 0, 0, 0};
    SAY("GET_QUEUE_WAVE_STATE", call(RW, 0x1b, &state, sizeof state), "%s", "");
    struct { uint32_t id, count, first, pad; } gws = {0, 64, 0, 0};
    SAY("ALLOC_QUEUE_GWS", call(RW, 0x1e, &gws, sizeof gws), "%s", "");
}

static void process_wide(void) {
    struct { uint64_t start, bytes; uint32_t op, count; uint32_t attribute[4]; } svm = {4096, 4096, 1, 2, {0}};
    SAY("SVM", call(RW, 0x20, &svm, sizeof svm), "%s", "");
    SAY("SVM of too small an argument", call(RW, 0x20, &svm, 24), "%s", "");
    int32_t mode = -1;
    SAY("SET_XNACK_MODE asks", call(RW, 0x21, &mode, 4), "%s", "");
    mode = 0;
    SAY("SET_XNACK_MODE off", call(RW, 0x21, &mode, 4), "%s", "");
    uint64_t criu[7] = {0};
    ((uint32_t *)criu)[12] = 0;
    SAY("CRIU_OP 0", call(RW, 0x22, criu, 56), "%s", "");
    ((uint32_t *)criu)[12] = 9;
    SAY("CRIU_OP 9", call(RW, 0x22, criu, 56), "%s", "");
    struct { uint64_t debug; uint32_t mode, capabilities; } runtime = {0, 1, 7};
    SAY("RUNTIME_ENABLE", call(RW, 0x25, &runtime, sizeof runtime), "%s", "");
    SAY("RUNTIME_ENABLE again", call(RW, 0x25, &runtime, sizeof runtime), "%s", "");
    runtime.mode = 0;
    SAY("RUNTIME_ENABLE off", call(RW, 0x25, &runtime, sizeof runtime), "%s", "");
    SAY("RUNTIME_ENABLE off again", call(RW, 0x25, &runtime, sizeof runtime), "%s", "");
    struct { uint32_t pid, op; uint64_t rest[3]; } trap = {(uint32_t)getpid(), 2, {0}};
    SAY("DBG_TRAP of oneself, not enabled", call(RW, 0x26, &trap, sizeof trap), "%s", "");
    trap.pid = 0x3ffffff;
    SAY("DBG_TRAP of nobody", call(RW, 0x26, &trap, sizeof trap), "%s", "");
}

static struct create_event first;

static void kinds_of_events(void) {
    struct create_event event;
    static const uint32_t order[] = {0, 5, 0, 1, 2, 3, 4, 6, 7, 8, 9, 100};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int result = create(&event, order[i], 0);
        SAY("CREATE_EVENT", result, "type %u, id %x, slot %u, trigger %x, page %d", order[i], event.id,
            event.slot, event.trigger, event.page_offset != 0);
        if (i == 0) first = event;
        if (i > 2) SAY("DESTROY_EVENT", on_event(DESTROY, event.id), "%s", "");
    }
    struct create_event handle = {.page_offset = 1ull << 32};
    SAY("CREATE_EVENT with a page that is none", call(RW, 0x08, &handle, sizeof handle), "%s", "");
    SAY("DESTROY_EVENT", on_event(DESTROY, 2), "%s", "");
    int result = create(&event, 0, 1);
    SAY("CREATE_EVENT takes the lowest slot", result, "id %u", event.id);
    create(&event, 3, 0);
    SAY("SET_EVENT of a hardware exception", on_event(SET, event.id), "%s", "");
    SAY("RESET_EVENT of it", on_event(RESET, event.id), "%s", "");
    WAIT("WAIT_EVENTS for it", wait_one(event.id, 0));
    on_event(DESTROY, event.id);
    create(&event, 5, 0);
    SAY("SET_EVENT of a debug event", on_event(SET, event.id), "%s", "");
    on_event(DESTROY, event.id);
    static const unsigned numbers[] = {DESTROY, SET, RESET};
    static const uint32_t unknown[] = {0, 77, 4096, 0x40000077, 0xffffffff};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5; j++)
            SAY("no such event", on_event(numbers[i], unknown[j]), "%02x of %x", numbers[i], unknown[j]);
}

static void waits(void) {
    struct create_event automatic, manual, third;
    create(&automatic, 0, 1);
    create(&manual, 0, 0);
    create(&third, 0, 0);
    WAIT("WAIT_EVENTS, timeout 0", wait_one(automatic.id, 0));
    long before = milliseconds();
    WAIT("WAIT_EVENTS, timeout 50 ms", wait_one(automatic.id, 50));
    long took = milliseconds() - before;
    SAY("that took", 0, "at least 50 ms %d, field still %u", took >= 50, waited.timeout);
    SAY("SET_EVENT", on_event(SET, automatic.id), "automatic");
    WAIT("WAIT_EVENTS", wait_one(automatic.id, 0));
    WAIT("WAIT_EVENTS again", wait_one(automatic.id, 0));
    SAY("SET_EVENT", on_event(SET, manual.id), "manual");
    WAIT("WAIT_EVENTS", wait_one(manual.id, 0));
    WAIT("WAIT_EVENTS again", wait_one(manual.id, 0));
    SAY("RESET_EVENT", on_event(RESET, manual.id), "manual");
    WAIT("WAIT_EVENTS", wait_one(manual.id, 0));
    on_event(SET, manual.id);
    memset(data, 0, sizeof data);
    data[0].id = third.id, data[1].id = manual.id;
    WAIT("WAIT_EVENTS for any of two", wait_for(2, 0, 0));
    WAIT("WAIT_EVENTS for all of two", wait_for(2, 1, 20));
    on_event(SET, third.id);
    WAIT("WAIT_EVENTS for all of two, both set", wait_for(2, 1, 20));
    data[1].id = third.id;
    WAIT("WAIT_EVENTS for the same event twice", wait_for(2, 1, 0));
    on_event(SET, automatic.id);
    data[0].id = data[1].id = automatic.id;
    WAIT("WAIT_EVENTS for an automatic event twice", wait_for(2, 1, 0));
    WAIT("WAIT_EVENTS for an unknown event", wait_one(4000, 0));
    WAIT("WAIT_EVENTS for none", wait_for(0, 0, 0));
    WAIT("WAIT_EVENTS for all of none", wait_for(0, 1, 0));
    waited = (struct wait_events){0, 1, 0, 0, 77};
    WAIT("WAIT_EVENTS, events at null", call(RW, 0x0c, &waited, sizeof waited));
    data[0].id = manual.id, data[1].id = 4000;
    WAIT("WAIT_EVENTS, the second unknown", wait_for(2, 0, 0));
    for (uint64_t age = 1; age < 8; age += 3) {
        on_event(SET, automatic.id);
        memset(data, 0, sizeof data);
        data[0].id = automatic.id, data[0].age = age;
        int result = wait_for(1, 0, 0);
        SAY("WAIT_EVENTS with an age", result, "given %d, result %u, now %d", (int)age, waited.result, (int)data[0].age);
        result = wait_for(1, 0, 0);
        SAY("WAIT_EVENTS with it again", result, "result %u, now %d", waited.result, (int)data[0].age);
    }
    memset(data, 0, sizeof data);
    data[0].id = manual.id;
    int result = wait_for(1, 0, 0);
    SAY("WAIT_EVENTS with age 0", result, "result %u, now %d", waited.result, (int)data[0].age);
}

static uint32_t target;
static void *setter(void *unused) {
    (void)unused;
    usleep(30000);
    on_event(SET, target);
    return NULL;
}
static void *destroyer(void *unused) {
    (void)unused;
    usleep(30000);
    on_event(DESTROY, target);
    return NULL;
}
static void *closer(void *fd) {
    usleep(30000);
    close((int)(intptr_t)fd);
    return NULL;
}
static void *waiter(void *out) {
    struct event_data one = {.id = target};
    struct wait_events args = {(uintptr_t)&one, 1, 0, 2000, 77};
    *(uint32_t *)out = call(RW, 0x0c, &args, sizeof args) ? 99 : args.result;
    return NULL;
}

static void threads(void) {
    struct create_event event;
    pthread_t thread, other;
    create(&event, 0, 1);
    target = event.id;
    pthread_create(&thread, NULL, setter, NULL);
    WAIT("SET_EVENT by another thread", wait_one(event.id, 5000));
    pthread_join(thread, NULL);
    uint32_t results[2] = {88, 88};
    pthread_create(&thread, NULL, waiter, &results[0]);
    pthread_create(&other, NULL, waiter, &results[1]);
    usleep(100000);
    on_event(SET, event.id);
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
    SAY("two threads wait for one automatic event", 0, "woken %d, timed out %d",
        (results[0] == 0) + (results[1] == 0), (results[0] == 1) + (results[1] == 1));
    WAIT("WAIT_EVENTS after that", wait_one(event.id, 0));
    pthread_create(&thread, NULL, destroyer, NULL);
    WAIT("DESTROY_EVENT by another thread", wait_one(event.id, 5000));
    pthread_join(thread, NULL);
    create(&event, 0, 1);
    int fd = kfd, second = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    kfd = second;
    pthread_create(&thread, NULL, closer, (void *)(intptr_t)second);
    WAIT("close by another thread", wait_one(event.id, 150));
    pthread_join(thread, NULL);
    kfd = fd;
    on_event(SET, event.id);
    WAIT("WAIT_EVENTS through the other descriptor", wait_one(event.id, 0));
}

static void interrupted(int signal) { (void)signal; }

static void signals(void) {
    struct create_event event;
    create(&event, 0, 1);
    struct sigaction action = {.sa_handler = interrupted};
    sigaction(SIGALRM, &action, NULL);
    timer_t timer;
    struct sigevent notify = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec once = {.it_value = {0, 30000000}};
    timer_create(CLOCK_MONOTONIC, &notify, &timer);
    timer_settime(timer, 0, &once, NULL);
    int result = wait_one(event.id, 300);
    SAY("WAIT_EVENTS interrupted by a handler", result, "result %u", waited.result);
    timer_delete(timer);
}

static const char *error_of_mapping(void *at) { return at == MAP_FAILED ? name_of(errno) : "ok"; }

static void mappings(void) {
    size_t page = 4096;
    void *at = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)first.page_offset);
    SAY("mmap of the event page", 0, "events, GPU 0, 9 pages: %s", error_of_mapping(at));
    struct create_event event;
    uint32_t last = 0;
    while (create(&event, 0, 0) == 0) last = event.id;
    int error = errno;
    SAY("events before the page was mapped", 0, "last id %u, then %s", last, name_of(error));
    at = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)first.page_offset);
    SAY("mmap of the event page", 0, "events, GPU 0, 8 pages: %s", error_of_mapping(at));
    if (at != MAP_FAILED) {
        uint64_t *slots = at;
        SAY("the page reads", 0, "%llx, %llx, %llx", (long long)slots[1], (long long)slots[200], (long long)slots[4095]);
    }
    while (create(&event, 0, 0) == 0) last = event.id;
    error = errno;
    SAY("events after it", 0, "last id %u, then %s", last, name_of(error));
    SAY("CREATE_EVENT of another type", create(&event, 8, 0), "id %x", event.id);
    at = mmap(NULL, page, PROT_READ, MAP_SHARED, kfd, (off_t)first.page_offset);
    SAY("mmap of the event page", 0, "events, GPU 0, 1 page: %s", error_of_mapping(at));
    SAY("DESTROY_EVENT", on_event(DESTROY, 300), "%s", "");
    SAY("CREATE_EVENT with fewer slots mapped than in use", create(&event, 0, 0), "%s", "");
    // KFD's own offsets: type in the upper two bits, GPU in the next sixteen.
    static const struct { const char *what; uint64_t offset; size_t pages; } all[] = {
        {"doorbells of GPU 1", 3ull << 62 | 1ull << 46, 2}, {"doorbells of GPU 0", 3ull << 62, 2},
        {"MMIO of GPU 1", 1ull << 46, 1}, {"MMIO of GPU 0", 0, 1},
        {"reserved memory of GPU 1", 1ull << 62 | 1ull << 46, 2},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        at = mmap(NULL, all[i].pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)all[i].offset);
        SAY("mmap", at == MAP_FAILED ? -1 : 0, "%s", all[i].what);
    }
    at = mmap(NULL, 8 * page, PROT_READ, MAP_SHARED, kfd, (off_t)(2ull << 62));
    SAY("mmap of the events at KFD's own offset", at == MAP_FAILED ? -1 : 0, "%s", "");
    at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, open("/dev/kfd", O_RDONLY), (off_t)first.page_offset);
    SAY("mmap for writing of a descriptor for reading", at == MAP_FAILED ? -1 : 0, "%s", "");
}

static void forked(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct version version;
        struct create_event event;
        SAY("child: GET_VERSION", call(R, 0x01, &version, sizeof version), "%s", "");
        SAY("child: unknown number", call(RW, 0x7f, &version, sizeof version), "%s", "");
        SAY("child: CREATE_EVENT", create(&event, 0, 0), "%s", "");
        void *at = mmap(NULL, 8 * 4096, PROT_READ, MAP_SHARED, kfd, (off_t)first.page_offset);
        SAY("child: mmap", at == MAP_FAILED ? -1 : 0, "%s", "");
        int inherited = kfd;
        kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
        SAY("child: open", kfd, "%s", "");
        SAY("child: GET_VERSION of its own", call(R, 0x01, &version, sizeof version), "%s", "");
        int result = create(&event, 0, 0);
        SAY("child: CREATE_EVENT of its own", result, "id %u", event.id);
        WAIT("child: WAIT_EVENTS for the parent's", wait_one(3, 0));
        int own = kfd;
        kfd = inherited;
        SAY("child: GET_VERSION of the parent's still", call(R, 0x01, &version, sizeof version), "%s", "");
        close(inherited);
        SAY("child: after close", call(R, 0x01, &version, sizeof version), "%s", "");
        kfd = own;
        SAY("child: its own still", call(R, 0x01, &version, sizeof version), "%s", "");
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) printf("child died of %d\n", WTERMSIG(status));
    struct version version;
    SAY("parent: GET_VERSION after that", call(R, 0x01, &version, sizeof version), "%s", "");
}

static void reopened(void) {
    struct create_event event;
    create(&event, 1, 0);
    uint32_t id = event.id;
    close(kfd);
    kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    SAY("open after every descriptor was closed", kfd, "%s", "");
    SAY("DESTROY_EVENT of an event from before", on_event(DESTROY, id), "%s", "");
}

static void unprivileged(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct stat status;
        stat("/dev/kfd", &status);
        if (setgid(65534) || setuid(65534)) _exit(1);
        SAY("open by another user", open("/dev/kfd", O_RDWR), "mode %o", status.st_mode & 0777);
        SAY("a user's generation_id", open(TOPOLOGY "/generation_id", O_RDONLY) < 0 ? -1 : 0, "%s", "");
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    SAY("open", kfd, "%s", "");
    if (kfd < 0) return 1;
    openings();
    versions();
    sysfs();
    devices();
    memory();
    queues();
    process_wide();
    kinds_of_events();
    waits();
    threads();
    signals();
    mappings();
    forked();
    reopened();
    unprivileged();
    printf("end: %d calls\n", *line);
    return 0;
}
