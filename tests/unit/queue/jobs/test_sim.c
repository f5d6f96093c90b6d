/* tests/unit/queue/jobs/test_sim.c: thousands of lives of jobs, each by its seed
 * (tests/sim/life.h).
 *
 *     test_sim               SEEDS of them, and those of the mutants, which must be caught
 *     test_sim SEED [MUTANT] one of them, with a trace of what happens
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/life.h"

#define SEEDS 10000 /* INVERTD_SIM_SEEDS says another number */
#define SEEDS_OF_A_MUTANT 3000
#define PROCESSES 2

static const struct {
    const char *name;
    long first_seed; /* from here on: what is rare need not be waited for */
} mutants[LIFE_MUTANTS] = {
    [LIFE_NO_FENCE] = {"a store that does not fence", 1250},
    [LIFE_NO_SYNC] = {"a disk that does not sync", 1},
    [LIFE_NO_FOLDER_SYNC] = {"a spool that does not sync its folders", 0},
};

static long seeds(void)
{
    const char *text = getenv("INVERTD_SIM_SEEDS");
    return text != NULL ? strtol(text, NULL, 10) : SEEDS;
}

/* Every PROCESSES-th seed; the exit status says whether all went well. */
static int run_share(int share)
{
    int failed = 0;
    for (long seed = share; seed < seeds() && failed < 10; seed += PROCESSES) {
        const char *wrong = life_run((uint64_t)seed, LIFE_WHOLE, NULL);
        if (wrong == NULL)
            continue;
        failed++;
        fprintf(stderr, "seed %ld: %s\n", seed, wrong);
    }
    return failed != 0;
}

static int run_whole(void)
{
    int failed = 0, status = 0;
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            _exit(run_share(i));
    while (wait(&status) > 0)
        failed += status != 0;
    printf("%ld lives: %s\n", seeds(), failed == 0 ? "all went well" : "some went wrong");
    return failed;
}

/* A mutant that no life catches is a fault of the simulation. */
static int run_mutant(enum life_mutant mutant)
{
    long first = mutants[mutant].first_seed;
    for (long seed = first; seed < first + SEEDS_OF_A_MUTANT; seed++) {
        const char *wrong = life_run((uint64_t)seed, mutant, NULL);
        if (wrong == NULL)
            continue;
        printf("%s is caught by seed %ld: %s\n", mutants[mutant].name, seed, wrong);
        return 0;
    }
    fprintf(stderr, "%s is not caught\n", mutants[mutant].name);
    return 1;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc > 1) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        enum life_mutant mutant =
            argc > 2 ? (enum life_mutant)strtol(argv[2], NULL, 10) : LIFE_WHOLE;
        const char *wrong = life_run(strtoull(argv[1], NULL, 10), mutant, stdout);
        printf("%s\n", wrong != NULL ? wrong : "all went well");
        return wrong != NULL;
    }
    for (int i = LIFE_WHOLE + 1; i < LIFE_MUTANTS; i++)
        failed += run_mutant((enum life_mutant)i);
    failed += run_whole();
    return failed != 0;
}
