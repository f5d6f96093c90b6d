/* tests/simt/sanitizers.h: what simt.cc says the sanitizers, and nothing in builds without them.
 *
 * To ThreadSanitizer a fiber is a thread: TSAN_MAKE and TSAN_END it, TSAN_BECOME it when it runs.
 * What one gave (TSAN_GIVE) comes before what another does after it took (TSAN_TAKE) the token.
 */
#ifndef TESTS_SIMT_SANITIZERS_H
#define TESTS_SIMT_SANITIZERS_H

#define QUIET __attribute__((no_sanitize("thread")))

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define TSAN_IS_HERE 1
#define TSAN_MAKE() __tsan_create_fiber(0)
#define TSAN_SELF() __tsan_get_current_fiber()
#define TSAN_END(who) ((who) ? __tsan_destroy_fiber(who) : (void)0)
#define TSAN_BECOME(who) __tsan_switch_to_fiber(who, __tsan_switch_to_fiber_no_sync)
#define TSAN_GIVE(token) __tsan_release(token)
#define TSAN_TAKE(token) __tsan_acquire(token)
#else
#define TSAN_IS_HERE 0
#define TSAN_MAKE() NULL
#define TSAN_SELF() NULL
#define TSAN_END(who) ((void)(who))
#define TSAN_BECOME(who) ((void)(who))
#define TSAN_GIVE(token) ((void)(token))
#define TSAN_TAKE(token) ((void)(token))
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define ASAN_IS_HERE 1
#define ASAN_FORBID(from, bytes) __asan_poison_memory_region(from, bytes)
#define ASAN_ALLOW(from, bytes) __asan_unpoison_memory_region(from, bytes)
#else
#define ASAN_IS_HERE 0
#define ASAN_FORBID(from, bytes) ((void)(from))
#define ASAN_ALLOW(from, bytes) ((void)(from))
#endif

#endif
