/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Runs a program and kills it when it is about to make a system call for the nth time. The kernel
 * stops it at that kind of call alone (a seccomp filter whose notifications we read), where strace
 * stops it at all of them: a program takes a fifth of the time.
 *
 *     kill_at CALL NUMBER PROGRAM [ARGUMENT…]
 *
 * Calls of all threads and children count. Whichever process makes the nth one is killed before the
 * call begins. Exit status: that of the program, 137 when it was killed; 125 when it cannot be
 * watched here. */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 125 };

#define CALL(name)                                                                                 \
    {                                                                                              \
#name, SYS_##name                                                                          \
    }
static const struct {
    const char *name;
    long number;
} calls[] = {
    CALL(close),     CALL(fallocate), CALL(fcntl),    CALL(fdatasync),       CALL(fsync),
    CALL(ftruncate), CALL(ioctl),     CALL(linkat),   CALL(mkdirat),         CALL(mmap),
    CALL(openat),    CALL(pwrite64),  CALL(pwritev),  CALL(pwritev2),        CALL(recvfrom),
    CALL(renameat2), CALL(sendto),    CALL(unlinkat), CALL(sync_file_range), CALL(write),
    CALL(writev),
#ifdef SYS_link /* the older calls that newer architectures do without */
    CALL(link),      CALL(mkdir),     CALL(rename),   CALL(unlink),
#endif
};

static _Noreturn void
give_up(const char *what)
{
    fprintf(stderr, "kill_at: %s: %s\n", what, strerror(errno));
    exit(CANNOT);
}

static long
number_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    errno = EINVAL;
    give_up(name);
}

/* Asks to be told of the call. Returns the descriptor to read that from, which ends with exec. */
static int
filter(long call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (fd < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                     &program);
    if (fd < 0)
        give_up("seccomp");
    return (int) fd;
}

union message {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

static void
pass(int to, int fd)
{
    union message control = {.bytes = {0}};
    char byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
    if (sendmsg(to, &message, 0) != 1)
        give_up("sendmsg");
}

/* -1: the other side has ended. */
static int
take(int from)
{
    union message control = {.bytes = {0}};
    char byte;
    int fd = -1;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Lets calls begin, but for the nth one, until nobody is left who makes any. */
static void
watch(int fd, long nth)
{
    for (;;) {
        struct pollfd state = {.fd = fd, .events = POLLIN};
        struct seccomp_notif call = {0};
        if (poll(&state, 1, -1) < 0 && errno != EINTR)
            give_up("poll");
        if ((state.revents & (POLLHUP | POLLIN)) == POLLHUP)
            return;
        if ((state.revents & POLLIN) == 0 || ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue; /* whoever made it has ended */
        if (--nth == 0)
            (void) kill((pid_t) call.pid, SIGKILL);
        struct seccomp_notif_resp answer = {.id = call.id,
                                            .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (nth != 0)
            (void) ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int
main(int argc, char **argv)
{
    int pair[2];
    int status;
    if (argc < 4)
        return fprintf(stderr, "usage: kill_at CALL NUMBER PROGRAM [ARGUMENT...]\n"), CANNOT;
    long call = number_of(argv[1]);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        give_up("socketpair");
    pid_t child = fork();
    if (child < 0)
        give_up("fork");
    if (child == 0) {
        pass(pair[1], filter(call));
        execvp(argv[3], &argv[3]);
        _exit(127);
    }
    (void) close(pair[1]);
    int fd = take(pair[0]);
    if (fd >= 0)
        watch(fd, strtol(argv[2], NULL, 10));
    if (waitpid(child, &status, 0) != child)
        give_up("waitpid");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
