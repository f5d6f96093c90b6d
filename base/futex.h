/* base/futex.h: a word that threads of one process sleep on. Linux only. Any thread; what is read
 * and written around a sleep is the callers' to order, sequentially consistent as a rule. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word is `expected`. Returns early at times. */
void futex_wait(_Atomic uint32_t *word, uint32_t expected);
/* Wakes `count` of those who sleep on the word, at most. */
void futex_wake(_Atomic uint32_t *word, uint32_t count);

#endif
