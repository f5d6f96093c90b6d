/* Messages with descriptors, within a process and to a forked child; what is refused holds nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/descriptor.h"

static void make_pair(int ends[2])
{
    struct failure failure;
    assert_int_equal(descriptor_pair(ends, &failure), ERROR_NONE);
    for (int i = 0; i < 2; i++)
        assert_true((fcntl(ends[i], F_GETFD) & FD_CLOEXEC) != 0);
}

static void close_pair(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Whether no process has the other end of the pipe open any more. */
static bool is_at_end(int pipe_end)
{
    char byte;
    return read(pipe_end, &byte, 1) == 0;
}

static void test_messages(void **state)
{
    (void)state;
    int ends[2], pipes[2];
    struct descriptor_message message;
    make_pair(ends);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(descriptor_send(ends[0], "plain", 5, -1), ERROR_NONE);
    assert_int_equal(descriptor_send(ends[0], "with", 4, pipes[1]), ERROR_NONE);
    close(pipes[1]); /* the message holds it */

    assert_int_equal(descriptor_receive(ends[1], &message), ERROR_NONE);
    assert_int_equal(message.length, 5);
    assert_memory_equal(message.bytes, "plain", 5);
    assert_int_equal(message.fd, -1);
    assert_int_equal(descriptor_receive(ends[1], &message), ERROR_NONE);
    assert_int_equal(message.length, 4);
    assert_true(message.fd >= 0);
    assert_true((fcntl(message.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(write(message.fd, "x", 1), 1);
    close(message.fd);
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_true(is_at_end(pipes[0]));
    close(pipes[0]);

    close(ends[0]);
    assert_int_equal(descriptor_receive(ends[1], &message), ERROR_NONE);
    assert_int_equal(message.length, 0);
    assert_int_equal(message.fd, -1);
    close(ends[1]);
}

/* Sends what descriptor_send does not: any length, any number of descriptors. */
static void send_raw(int socket, size_t length, int fd, int count)
{
    static char bytes[2 * DESCRIPTOR_MESSAGE_MAX];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(32 * sizeof fd)] = {0};
    assert_true(count <= 32 && length <= sizeof bytes);
    struct iovec piece = {bytes, length};
    struct msghdr header = {.msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = CMSG_SPACE((size_t)count * sizeof fd)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN((size_t)count * sizeof fd);
    for (int i = 0; i < count; i++)
        memcpy(CMSG_DATA(rights) + (size_t)i * sizeof fd, &fd, sizeof fd);
    assert_int_equal(sendmsg(socket, &header, 0), length);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        int descriptors;
    } rows[] = {{DESCRIPTOR_MESSAGE_MAX + 1, 1}, {4, 2}, {4, 8}, {4, 9}, {4, 32}, {300, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int ends[2], pipes[2];
        struct descriptor_message message;
        make_pair(ends);
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        send_raw(ends[0], rows[i].length, pipes[1], rows[i].descriptors);
        close(pipes[1]);
        assert_int_equal(descriptor_send(ends[0], "next", 4, -1), ERROR_NONE);
        assert_int_equal(descriptor_receive(ends[1], &message), ERROR_MALFORMED);
        assert_int_equal(message.fd, -1);
        assert_true(is_at_end(pipes[0])); /* none is left open */
        assert_int_equal(descriptor_receive(ends[1], &message), ERROR_NONE);
        assert_int_equal(message.length, 4);
        close(pipes[0]);
        close_pair(ends);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    int ends[2];
    static const unsigned char bytes[DESCRIPTOR_MESSAGE_MAX];
    make_pair(ends);
    enum error error = ERROR_NONE;
    for (int i = 0; i < 1000000 && error == ERROR_NONE; i++)
        error = descriptor_send(ends[0], bytes, sizeof bytes, -1);
    assert_int_equal(error, ERROR_FULL); /* and it did not block */
    close(ends[1]);
    assert_int_equal(descriptor_send(ends[0], bytes, 1, -1), ERROR_INTERNAL); /* and no SIGPIPE */
    struct descriptor_message message;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(descriptor_receive(null, &message), ERROR_INTERNAL);
    close(null);
    close(ends[0]);
}

/* Writes a word into the memory that comes with a message, and ends. */
static _Noreturn void serve(int socket)
{
    struct descriptor_message message;
    if (descriptor_receive(socket, &message) != ERROR_NONE || message.fd < 0)
        _exit(1);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, message.fd, 0);
    if (map == MAP_FAILED)
        _exit(2);
    memcpy(map, message.bytes, message.length);
    _exit(0);
}

static void test_child(void **state)
{
    (void)state;
    int ends[2], status;
    make_pair(ends);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    int memory = memfd_create("test-descriptor", MFD_CLOEXEC); /* after the fork: unknown there */
    assert_true(memory >= 0);
    assert_int_equal(ftruncate(memory, 4096), 0);
    assert_int_equal(descriptor_send(ends[0], "word", 5, memory), ERROR_NONE);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char word[5];
    assert_int_equal(pread(memory, word, sizeof word, 0), sizeof word);
    assert_string_equal(word, "word");
    close(memory);
    close(ends[0]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
