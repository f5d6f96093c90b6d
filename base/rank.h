/* base/rank.h: how far a thread gives way to the others of the machine.
 *
 * nice alone decides who has how much of a busy processor, not who goes first: a thread that wakes
 * may wait for the end of another's slice, some milliseconds. One of RANK_IDLE is preempted by any
 * other at once (SCHED_IDLE), and has what these leave.
 */
#ifndef BASE_RANK_H
#define BASE_RANK_H

enum rank {
    RANK_NORMAL,
    RANK_NICE, /* a tenth of a busy processor or less */
    RANK_IDLE
};

/* For the calling thread, and those that it makes; for good. What the system refuses is left. */
void rank_take(enum rank rank);

#endif
