/* base/confine.c: see confine.h.
 *
 * The front's list is what a run of the whole suite needs, and what the C library may choose in
 * their place on another day. A feature that needs another call adds its row, with the reason. The
 * engine's list is the other way round, for no one can list what CUDA's libraries call.
 */
#include "base/confine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <seccomp.h>

#define REFUSED SCMP_ACT_ERRNO(EPERM)
#define INT_BITS UINT32_MAX /* of an argument that is an int: above them lies anything */

struct row {
    const char *calls; /* names with spaces between */
    bool is_conditional;
    unsigned argument; /* of it the bits of the mask must be `value` */
    uint64_t mask, value;
};

static const struct row front_allows[] = {
    /* Sockets that are there (listen: a shorter backlog at the end), and events. */
    {.calls =
         "accept accept4 recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg sendfile splice "
         "shutdown listen getsockname getpeername getsockopt setsockopt epoll_create1 epoll_ctl "
         "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 eventfd2 pipe2"},
    /* The engines' control sockets, and systemd's notifications. */
    {"socket socketpair", true, 0, INT_BITS, AF_UNIX},
    /* Descriptors and files: logs, certificates, options and tokens that are read anew, /proc. */
    {.calls = "read readv pread64 preadv write writev pwrite64 pwritev close close_range open "
              "openat lseek fstat stat lstat newfstatat statx statfs fstatfs access faccessat "
              "faccessat2 readlink readlinkat getcwd getdents64 fcntl dup dup2 dup3 "
              "ftruncate fallocate fsync fdatasync flock unlink unlinkat rename renameat renameat2 "
              "fchmod umask memfd_create sync_file_range fadvise64"},
    {"ioctl", true, 1, INT_BITS, FIONBIO}, /* libuv's */
    {"ioctl", true, 1, INT_BITS, FIOCLEX},
    {"ioctl", true, 1, INT_BITS, FIONREAD},
    {"ioctl", true, 1, INT_BITS, TCGETS}, /* isatty's */
    /* Memory, of which none becomes executable. */
    {.calls = "brk munmap mremap madvise mincore msync membarrier"},
    {"mmap mprotect", true, 2, PROT_EXEC, 0},
    /* Threads; clone3 is answered apart, see fill. */
    {.calls = "set_robust_list get_robust_list rseq futex futex_waitv set_tid_address exit "
              "exit_group sched_yield sched_getaffinity sched_getparam sched_getscheduler getcpu"},
    {"clone", true, 0, CLONE_THREAD, CLONE_THREAD},
    {"prctl", true, 0, INT_BITS, PR_SET_NAME},
    /* Signals, and the engines' ends. */
    {.calls = "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait sigaltstack "
              "restart_syscall tgkill wait4 waitid"},
    /* Time, and who and where one is. */
    {.calls = "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times "
              "timerfd_create timerfd_settime getpid gettid getppid getuid geteuid getgid getegid "
              "getrusage getrlimit sysinfo uname getrandom"},
    {"prlimit64", true, 2, UINT64_MAX, 0}, /* to ask */
};

/* invertd-post's: what libcurl, GnuTLS and the C library's resolver need. A module of the resolver
 * that is a library of its own is not loaded any more: names come from /etc/hosts and from DNS. */
static const struct row post_allows[] = {
    {.calls = "connect recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg shutdown getsockname "
              "getpeername getsockopt setsockopt poll ppoll select pselect6 eventfd2 pipe2"},
    {"socket", true, 0, INT_BITS, AF_INET},
    {"socket", true, 0, INT_BITS, AF_INET6},
    {"socket socketpair", true, 0, INT_BITS, AF_UNIX}, /* nscd's; between threads */
    {"socket", true, 0, INT_BITS, AF_NETLINK},         /* which addresses this machine has */
    {.calls = "bind"},                                 /* of AF_NETLINK */
    /* Files to be read: authorities, /etc/hosts, /etc/resolv.conf. */
    {"open", true, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {"openat", true, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {.calls = "read readv pread64 write writev close lseek fstat stat lstat newfstatat statx "
              "access faccessat faccessat2 readlink readlinkat fcntl"},
    {"ioctl", true, 1, INT_BITS, FIONBIO},
    {"ioctl", true, 1, INT_BITS, FIONREAD},
    {.calls = "brk munmap mremap madvise"},
    {"mmap mprotect", true, 2, PROT_EXEC, 0},
    {.calls = "set_robust_list rseq futex set_tid_address exit exit_group sched_yield "
              "sched_getaffinity getcpu"},
    {"clone", true, 0, CLONE_THREAD, CLONE_THREAD},
    {.calls = "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall tgkill"},
    {.calls = "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time getpid "
              "gettid getuid geteuid getgid getegid uname sysinfo getrandom"},
    {"prlimit64", true, 2, UINT64_MAX, 0},
};

static const struct row engine_refuses[] = {
    {.calls = "execve execveat"},
    /* Other processes. */
    {.calls = "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp"},
    /* File systems and name spaces. */
    {.calls = "mount umount2 mount_setattr move_mount open_tree fsopen fsmount fsconfig pivot_root "
              "chroot unshare setns open_by_handle_at name_to_handle_at quotactl swapon swapoff "
              "acct mknod mknodat"},
    {"clone", true, 0, CLONE_NEWUSER, CLONE_NEWUSER}, /* root's calls, for anyone */
    /* The kernel. */
    {.calls = "init_module finit_module delete_module kexec_load kexec_file_load bpf "
              "perf_event_open userfaultfd io_uring_setup reboot syslog add_key request_key keyctl "
              "iopl ioperm modify_ldt personality settimeofday clock_settime adjtimex "
              "clock_adjtime sethostname setdomainname vhangup"},
    /* Who one is. */
    {.calls = "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups "
              "capset"},
    /* What is typed at the terminal. */
    {"ioctl", true, 1, INT_BITS, TIOCSTI},
    /* The network. */
    {"socket", true, 0, INT_BITS, AF_INET},
    {"socket", true, 0, INT_BITS, AF_INET6},
    {"socket", true, 0, INT_BITS, AF_PACKET},
    {"socket", true, 0, INT_BITS, AF_ALG},
    {"socket", true, 0, INT_BITS, AF_VSOCK},
};

static const struct {
    uint32_t otherwise, action; /* what befalls calls that are not listed, and those that are */
    const struct row *rows;
    size_t count;
} lists[] = {
    [CONFINE_FRONT] = {REFUSED, SCMP_ACT_ALLOW, front_allows,
                       sizeof front_allows / sizeof front_allows[0]},
    [CONFINE_ENGINE] = {SCMP_ACT_ALLOW, REFUSED, engine_refuses,
                        sizeof engine_refuses / sizeof engine_refuses[0]},
    [CONFINE_POST] = {REFUSED, SCMP_ACT_ALLOW, post_allows,
                      sizeof post_allows / sizeof post_allows[0]},
};

/* Calls that this machine's architecture lacks are passed over. Returns 0, or libseccomp's error.
 */
static int add_row(scmp_filter_ctx filter, uint32_t action, const struct row *row)
{
    const struct scmp_arg_cmp condition = {row->argument, SCMP_CMP_MASKED_EQ, row->mask,
                                           row->value};
    int status = 0, length = 0;
    char name[32];
    for (const char *at = row->calls; status == 0 && sscanf(at, "%31s%n", name, &length) == 1;
         at += length) {
        int call = seccomp_syscall_resolve_name(name);
        assert(call != __NR_SCMP_ERROR);
        if (call >= 0)
            status = seccomp_rule_add_array(filter, action, call, row->is_conditional, &condition);
    }
    return status;
}

static int fill(scmp_filter_ctx filter, enum confine_list list)
{
    int status = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (status == 0)
        status = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
    for (size_t i = 0; i < lists[list].count && status == 0; i++)
        status = add_row(filter, lists[list].action, &lists[list].rows[i]);
    /* Its flags lie in memory, where no list can see them: as if it were not there, so that the C
     * library makes threads by clone. */
    if (status == 0)
        status = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    return status;
}

enum error confine_process(enum confine_list list, struct failure *failure)
{
    assert((size_t)list < sizeof lists / sizeof lists[0]);
    int status = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
    scmp_filter_ctx filter = status == 0 ? seccomp_init(lists[list].otherwise) : NULL;
    if (status == 0)
        status = filter != NULL ? fill(filter, list) : -ENOMEM;
    if (status == 0)
        status = seccomp_load(filter);
    seccomp_release(filter);
    if (status == 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "the system does not confine this process: %s",
                       strerror(-status));
}
