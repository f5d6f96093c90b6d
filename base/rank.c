/* base/rank.c: see rank.h. */
#include "base/rank.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE 10

void rank_take(enum rank rank)
{
    const struct sched_param none = {0};
    if (rank == RANK_NICE)
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    else if (rank == RANK_IDLE)
        (void)sched_setscheduler(0, SCHED_IDLE, &none);
}
