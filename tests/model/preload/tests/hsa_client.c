// What AMD's runtime does with a model library, in short: interface 1.1.
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct functions {
    uint32_t major, minor;
    int (*create_memfd)(void);
    int (*handle_ioctl)(unsigned long request, void *argument);
    int (*handle_drm_call)(unsigned command, void *argument);
};

static const struct functions *model;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static int call(unsigned direction, unsigned number, void *args, unsigned bytes) {
    return model->handle_ioctl(direction << 30 | bytes << 16 | 'K' << 8 | number, args);
}

static uint32_t event_id;
static void *set_event(void *unused) {
    (void)unused;
    usleep(20000);
    uint32_t args[2] = {event_id, 0};
    CHECK(call(1, 0x0a, args, 8) == 0);
    return NULL;
}

int main(int count, char **words) {
    CHECK(count == 3);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const struct functions *(*get)(void) = (const struct functions *(*)(void))dlsym(library, "get_hsakmt_model_functions");
    CHECK(get);
    model = get();
    CHECK(model->major == 1 && model->minor == 1);
    int memory = model->create_memfd();
    CHECK(memory >= 0);

    uint32_t version[2] = {0};
    CHECK(call(2, 0x01, version, 8) == 0 && version[0] == 1 && version[1] == 17);
    errno = 0;
    CHECK(call(3, 0x7f, version, 8) == -1 && errno == ENOTTY);
    CHECK(call(2, 0x01, NULL, 8) == -1 && errno == EFAULT);
    struct { uint64_t list; uint32_t count, pad; } apertures = {0};
    uint64_t found[7 * 4];
    CHECK(call(3, 0x14, &apertures, 16) == 0 && apertures.count == 1);
    apertures.list = (uintptr_t)found;
    CHECK(call(3, 0x14, &apertures, 16) == 0);
    uint32_t gpu = (uint32_t)found[6];
    CHECK(gpu != 0);

    // The render node, through the commands for libdrm.
    int render = -1;
    struct { int minor; int *fd; } open_render = {5, &render};
    CHECK(model->handle_drm_call(8, &open_render) == -1 && errno == ENOENT && render == -1);
    open_render.minor = 128;
    CHECK(model->handle_drm_call(8, &open_render) == 0 && render >= 0);
    uint32_t major = 0, minor = 0;
    void *device = NULL;
    struct { int fd; uint32_t *major, *minor; void **device; } initialize = {render, &major, &minor, &device};
    CHECK(model->handle_drm_call(10, &initialize) == 0 && major == 3 && minor > 0 && device);
    const char *name = NULL;
    struct { void *device; const char **name; } marketing = {device, &name};
    CHECK(model->handle_drm_call(13, &marketing) == 0 && strstr(name, words[2]));
    int fd = -1;
    struct { void *device; int *fd; } get_fd = {device, &fd};
    CHECK(model->handle_drm_call(12, &get_fd) == 0 && fd == render);
    uint32_t info[256] = {0};
    struct { void *device; void *info; } query = {device, info};
    CHECK(model->handle_drm_call(14, &query) == 0 && info[0] != 0 && info[3] >= 141);
    CHECK(model->handle_drm_call(99, &query) == -1 && errno == EINVAL);

    // Memory, mapped by plain offsets into the descriptor.
    uint32_t vm[2] = {(uint32_t)render, gpu};
    CHECK(call(1, 0x15, vm, 8) == 0);
    struct { uint64_t va, bytes, handle, offset; uint32_t gpu, flags; } alloc = {0x10000000, 8192, 0, 0, gpu, 0x80000002};
    CHECK(call(3, 0x16, &alloc, 40) == 0);
    uint64_t *one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, render, (off_t)alloc.offset);
    uint64_t *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, (off_t)alloc.offset);
    CHECK(one != MAP_FAILED && two != MAP_FAILED);
    one[700] = 42;
    CHECK(two[700] == 42);
    struct { uint64_t handle, ids; uint32_t count, done; } map = {alloc.handle, (uintptr_t)&gpu, 1, 0};
    CHECK(call(3, 0x18, &map, 24) == 0 && map.done == 1);

    // A dma-buf: exported, imported, asked, freed.
    struct { uint64_t handle; uint32_t flags, fd; } export = {alloc.handle, 0x80002, 0};
    CHECK(call(3, 0x24, &export, 16) == 0);
    struct { void *buffer; uint64_t bytes; } imported = {0};
    struct { int fd; uint32_t type; void *result; } import = {(int)export.fd, 2, &imported};
    CHECK(model->handle_drm_call(2, &import) == 0 && imported.buffer && imported.bytes == 8192);
    import.fd = memory;
    CHECK(model->handle_drm_call(2, &import) == -1);
    uint64_t buffer_info[64] = {0};
    struct { void *buffer; void *info; } ask = {imported.buffer, buffer_info};
    CHECK(model->handle_drm_call(5, &ask) == 0 && buffer_info[0] == 8192);
    uint32_t again = 0;
    struct { void *buffer; uint32_t type; uint32_t *handle; } out = {imported.buffer, 2, &again};
    CHECK(model->handle_drm_call(3, &out) == 0 && again > 2);
    struct { void *buffer; } of_buffer = {imported.buffer};
    CHECK(model->handle_drm_call(1, &of_buffer) == 0);

    // WAIT_EVENTS sleeps while another thread calls SET_EVENT.
    struct { uint64_t offset; uint32_t trigger, type, automatic, node, id, slot; } event = {.automatic = 1};
    CHECK(call(3, 0x08, &event, 32) == 0);
    event_id = event.id;
    CHECK(mmap(NULL, 0x8000, PROT_READ, MAP_SHARED, memory, (off_t)event.offset) != MAP_FAILED);
    pthread_t thread;
    pthread_create(&thread, NULL, set_event, NULL);
    struct { uint64_t age, rest[4]; uint32_t id, pad; } data = {.id = event.id};
    struct { uint64_t events; uint32_t count, all, timeout, result; } wait = {(uintptr_t)&data, 1, 0, 20000, 9};
    CHECK(call(3, 0x0c, &wait, 24) == 0 && wait.result == 0);
    pthread_join(thread, NULL);

    struct { void *device; } of_device = {device};
    CHECK(model->handle_drm_call(11, &of_device) == 0);
    struct { int fd; } closing = {render};
    CHECK(model->handle_drm_call(9, &closing) == 0);
    puts("passed");
    return 0;
}
