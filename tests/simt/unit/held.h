/* tests/simt/unit/held.h: for tests of what finds no memory. */
#ifndef TESTS_SIMT_UNIT_HELD_H
#define TESTS_SIMT_UNIT_HELD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

/* The process gets no more memory, or what it did before. */
static inline void hold_memory(bool held)
{
    static struct rlimit before;
    if (before.rlim_max == 0)
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit limit = {held ? 0 : before.rlim_cur, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

#endif
