// Calls hooked functions where a hook that did more than forward would fail: before any constructor,
// in one, in a signal handler, in a child of vfork, after exit began.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void use(void) {
    struct stat status;
    char byte;
    int fd = open("/dev/zero", O_RDONLY);
    failures += fd < 0 || read(fd, &byte, 1) != 1 || fstat(fd, &status) || !S_ISCHR(status.st_mode);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    failures += at == MAP_FAILED || munmap(at, 4096);
    int copy = dup(fd);
    failures += copy < 0 || close(copy) || close(fd) || close(fd) != -1 || errno != EBADF;
    failures += access("/dev/null", R_OK) != 0 || open("/no/such", O_RDONLY) != -1 || errno != ENOENT;
    failures += open(NULL, O_RDONLY) != -1 || errno != EFAULT;
}

static void before_all(int count, char **words, char **variables) {
    (void)count, (void)words, (void)variables;
    use();
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = before_all;
__attribute__((constructor)) static void constructed(void) { use(); }

static void handler(int number) {
    (void)number;
    use();
}

static void at_end(void) {
    use();
    if (failures) _exit(9);
}

int main(void) {
    atexit(at_end);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    failures += kfd < 0;
    pid_t child = vfork(); // shares this memory
    if (child == 0) {
        close(kfd);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    raise(SIGUSR1);
    // The parent's descriptor is still its own.
    unsigned version[2] = {0};
    extern int ioctl(int, unsigned long, ...);
    failures += ioctl(kfd, 0x80084b01, version) != 0 || version[0] != 1;
    if (failures) printf("%d failures\n", failures);
    return failures != 0;
}
