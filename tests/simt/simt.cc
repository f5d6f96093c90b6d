/* tests/simt/simt.cc: the fibers of simt.h and their meetings.
 *
 * Each thread that launches owns a machine: the fibers of one block and their warps. All of it runs
 * on that thread, so nothing here is locked. To ThreadSanitizer a fiber is a thread of its own, but
 * this file is none of their business: its functions are QUIET, and what one fiber's call writes
 * another's reads without a word. The order that barriers make is reported to it expressly.
 *
 * Cost: a switch of fibers is a dozen instructions, and a meeting looks at each lane once; with
 * ThreadSanitizer each barrier joins the clocks of its threads.
 */
#include "machine.hh"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define REST_NS 20000

thread_local machine *simt_machine;
thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;
thread_local simt_copies *simt_copies_here;
thread_local unsigned char cuda__memory[SIMT_SHARED_MAX] __attribute__((aligned(1024)));

/* ---- Switching ---- */

extern "C" void simt__switch(void **from, void *to);

asm(".text\n"
    ".type simt__switch, @function\n"
    "simt__switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    popq %rcx\n" /* no ret: it would be predicted to go where this was called */
    "    jmp *%rcx\n"
    ".size simt__switch, . - simt__switch\n");

namespace
{

/* From a fiber to the scheduler. */
QUIET void leave(machine *m)
{
    fiber *self = m->running;
    TSAN_BECOME(m->tsan);
    simt__switch(&self->top, m->scheduler);
}

QUIET void enter(machine *m, fiber *f)
{
    m->running = f;
    threadIdx = f->thread;
    simt_copies_here = &f->copies;
    TSAN_BECOME(f->tsan);
    simt__switch(&m->scheduler, f->top);
    m->running = nullptr;
}

QUIET void end_fiber(machine *m, fiber *f);

QUIET void run_fiber()
{
    machine *m = simt_machine;
    for (;;) {
        TSAN_TAKE(&m->began);
        m->body(m->closure);
        TSAN_GIVE(&m->ended_all);
        end_fiber(m, m->running);
        leave(m);
    }
}

/* A fiber that has not begun, or must begin anew. */
QUIET void renew(machine *m, fiber *f)
{
    size_t bytes = STACK_BYTES - (size_t)(f - m->fibers) * STACK_STEP_BYTES % PAGE_BYTES;
    TSAN_END(f->tsan);
    f->tsan = TSAN_MAKE();
    ASAN_ALLOW(f->stack, STACK_BYTES);
    /* As simt__switch leaves it: six registers, an address to return to; the stack is then as a
     * call would leave it. */
    void **top = (void **)(f->stack + bytes) - 2;
    *top = (void *)run_fiber;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f->top = top;
}

QUIET bool make_fiber(machine *m, fiber *f)
{
    void *memory = mmap(nullptr, STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    mprotect(memory, PAGE_BYTES, PROT_NONE); /* an overflow ends the process */
    f->stack = (unsigned char *)memory + PAGE_BYTES;
    f->copies.copies = m->copies[f - m->fibers];
    renew(m, f);
    return true;
}

/* ---- Reports ---- */

__attribute__((format(printf, 2, 3))) QUIET void tell(machine *m, const char *format, ...)
{
    size_t used = strlen(m->report);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->report + used, sizeof m->report - used, format, arguments);
    va_end(arguments);
}

QUIET void tell_place(machine *m)
{
    tell(m, "simt: block (%u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z);
}

/* Ends the launch from a fiber, which does not come back. */
QUIET void give_up(machine *m, cudaError_t status)
{
    m->status = status;
    leave(m);
    abort();
}

QUIET bool waits_alike(const fiber *one, const fiber *other)
{
    return one->state == other->state && one->mask == other->mask &&
           one->call.line == other->call.line && one->call.name == other->call.name;
}

/* The launch before may not have ended when a thread did that did not wait for it; nor when what is
 * behind this launch begins. */
QUIET void look_for_waits(machine *m)
{
    int thread = 0;
    while (thread < m->threads && m->fibers[thread].waited)
        thread++;
    if (thread == m->threads)
        return;
    tell_place(m);
    tell(m, ": thread %d did not wait for the launch before\n", thread);
    m->status = cudaErrorLaunchFailure;
}

/* No one can go on. Says which threads wait where, those alike in one line. */
QUIET void tell_deadlock(machine *m)
{
    tell_place(m);
    tell(m, ": threads wait for ever\n");
    for (int i = 0; i < m->threads;) {
        const fiber *f = &m->fibers[i];
        int last = i;
        while (last + 1 < m->threads && waits_alike(f, &m->fibers[last + 1]))
            last++;
        tell(m, "  threads %d to %d ", i, last);
        if (f->state == ENDED)
            tell(m, "have ended\n");
        else
            tell(m, "wait in %s, mask %08x, %s:%d\n", f->call.name, f->mask, f->call.file,
                 f->call.line);
        i = last + 1;
    }
    m->status = cudaErrorLaunchFailure;
}

/* ---- Meetings ---- */

QUIET warp *warp_of(machine *m, const fiber *f)
{
    return &m->warps[(f - m->fibers) / SIMT_WARP];
}

QUIET fiber *lane_of(machine *m, const warp *w, int lane)
{
    return &m->fibers[(w - m->warps) * SIMT_WARP + lane];
}

QUIET void fail_meeting(machine *m, const fiber *one, const fiber *other)
{
    tell_place(m);
    tell(m, ": threads %d and %d meet in %s, mask %08x, %s:%d and %s, mask %08x, %s:%d\n",
         (int)(one - m->fibers), (int)(other - m->fibers), one->call.name, one->mask,
         one->call.file, one->call.line, other->call.name, other->mask, other->call.file,
         other->call.line);
    m->status = cudaErrorLaunchFailure;
}

QUIET bool is_same_call(const fiber *one, const fiber *other)
{
    return one->call.name == other->call.name || strcmp(one->call.name, other->call.name) == 0;
}

/* To ThreadSanitizer all that these threads did comes before all that they will do. */
QUIET void order_threads(machine *m, fiber *first, uint32_t lanes, int count, char *token)
{
    if (!TSAN_IS_HERE)
        return;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < count; i++) {
            if (count <= SIMT_WARP && !(lanes >> i & 1))
                continue;
            TSAN_BECOME(first[i].tsan);
            if (turn == 0)
                TSAN_GIVE(token);
            else
                TSAN_TAKE(token);
        }
    }
    TSAN_BECOME(m->running ? m->running->tsan : m->tsan);
}

/* Ends the meeting of the lanes in `mask`, if all are there that have not ended. */
QUIET void try_meeting(machine *m, warp *w, uint32_t mask)
{
    uint32_t lanes = mask & ~w->ended;
    if (lanes & ~w->waiting || !lanes)
        return;
    fiber *first = lane_of(m, w, __builtin_ctz(lanes));
    simt_party *party = w->parties;
    while (party->readers > 0)
        party++;
    party->lanes = lanes;
    for (uint32_t left = ~lanes; left; left &= left - 1)
        party->given[__builtin_ctz(left)] = simt_words{};
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        fiber *f = lane_of(m, w, lane);
        if (f->mask != mask || !is_same_call(f, first))
            return fail_meeting(m, first, f);
        party->given[lane] = f->given;
        party->readers++;
        f->party = party;
        f->state = READY;
    }
    w->waiting &= ~lanes;
    if (first->orders)
        order_threads(m, lane_of(m, w, 0), lanes, SIMT_WARP, &w->tokens[__builtin_ctz(lanes)]);
}

/* The same of the whole block. */
QUIET void try_block(machine *m)
{
    if (m->arrived == 0 || m->arrived + m->ended < m->threads)
        return;
    const fiber *first = nullptr;
    for (int i = 0; i < m->threads; i++) {
        fiber *f = &m->fibers[i];
        if (f->state != IN_BLOCK)
            continue;
        first = first ? first : f;
        if (!is_same_call(f, first))
            return fail_meeting(m, first, f);
        f->got = m->votes;
        f->state = READY;
    }
    m->arrived = 0;
    m->votes = simt_words{};
    order_threads(m, m->fibers, ~0u, m->threads, &m->met);
}

QUIET void end_fiber(machine *m, fiber *f)
{
    warp *w = warp_of(m, f);
    f->state = ENDED;
    m->ended++;
    m->changed = true;
    w->ended |= 1u << (f - m->fibers) % SIMT_WARP;
    for (uint32_t left = w->waiting; left && m->status == cudaSuccess; left &= left - 1) {
        const fiber *other = lane_of(m, w, __builtin_ctz(left));
        if (other->state == IN_WARP)
            try_meeting(m, w, other->mask);
    }
    if (m->status == cudaSuccess)
        try_block(m);
}

/* ---- The scheduler ---- */

QUIET uint32_t draw(machine *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 17;
    m->random ^= m->random << 5;
    return m->random;
}

QUIET void lay_order(machine *m)
{
    enum simt_order order = simt_order_now();
    for (int i = 0; i < m->threads; i++)
        m->order[i] = order == SIMT_BACKWARD ? m->threads - 1 - i : i;
    for (int i = m->threads - 1; order == SIMT_SHUFFLED && i > 0; i--) {
        int other = (int)(draw(m) % (uint32_t)(i + 1)), held = m->order[i];
        m->order[i] = m->order[other];
        m->order[other] = held;
    }
}

/* One turn of every thread that can go on, of places `first` to `end` - 1 of the order; false when
 * there is none. */
QUIET bool run_turns(machine *m, int first, int end)
{
    bool any = false;
    for (int i = first; i < end && m->status == cudaSuccess; i++) {
        fiber *f = &m->fibers[m->order[i]];
        if (f->state != READY)
            continue;
        any = true;
        enter(m, f);
    }
    return any;
}

/* The same where warp after warp goes as far as it can, from one that is drawn on. */
QUIET bool run_ahead(machine *m)
{
    const int warps = (m->threads + SIMT_WARP - 1) / SIMT_WARP;
    const int drawn = (int)(draw(m) % (uint32_t)warps);
    bool any = false, moved = false;
    for (int i = 0; i < warps; i++) {
        const int first = (drawn + i) % warps * SIMT_WARP, left = m->threads - first;
        do {
            m->moved = false;
            any |= run_turns(m, first, first + (left < SIMT_WARP ? left : SIMT_WARP));
            moved |= m->moved;
        } while (m->moved && m->status == cudaSuccess);
    }
    m->moved = moved;
    return any;
}

QUIET bool run_round(machine *m)
{
    lay_order(m);
    return simt_order_now() == SIMT_AHEAD ? run_ahead(m) : run_turns(m, 0, m->threads);
}

/* All fibers wait for other blocks, or have ended: so does the thread. */
QUIET void go_abroad(machine *m)
{
    char *token = simt_cluster_token();
    order_threads(m, m->fibers, ~0u, m->threads, token);
    if (!simt_meet_cluster_blocks()) {
        tell_place(m);
        tell(m, ": another block of the cluster has failed\n");
        m->status = cudaErrorLaunchFailure;
    }
    order_threads(m, m->fibers, ~0u, m->threads, token);
    for (int i = 0; i < m->threads; i++) {
        if (m->fibers[i].state == IN_CLUSTER)
            m->fibers[i].state = READY;
    }
    m->abroad = 0;
    m->moved = true;
}

} // namespace

QUIET void simt_run_block(machine *m, const cudaLaunchConfig_t *config, uint64_t index)
{
    blockDim = config->blockDim;
    gridDim = config->gridDim;
    blockIdx = uint3{(unsigned)(index % gridDim.x), (unsigned)(index / gridDim.x % gridDim.y),
                     (unsigned)(index / gridDim.x / gridDim.y)};
    memset(cuda__memory, 0xff, config->dynamicSmemBytes);
    m->ended = m->arrived = m->abroad = 0;
    m->votes = simt_words{};
    for (int i = 0; i < m->threads; i++) {
        fiber *f = &m->fibers[i];
        unsigned t = (unsigned)i;
        f->thread = uint3{t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
        f->copies.count = 0;
        f->waited = false;
        f->state = READY;
        f->party = nullptr;
        f->factors_turn = 0;
    }
    for (int i = 0; i * SIMT_WARP < m->threads; i++) {
        int lanes = m->threads - i * SIMT_WARP;
        warp *w = &m->warps[i];
        w->waiting = w->ended = 0;
        for (simt_party &party : w->parties)
            party.readers = 0;
        w->all = lanes >= SIMT_WARP ? ~0u : (1u << lanes) - 1;
    }
    TSAN_GIVE(&m->began);
    int still = 0; /* rounds in which all only looked */
    while (m->ended < m->threads && m->status == cudaSuccess) {
        m->moved = m->changed = false;
        if (!run_round(m)) {
            if (m->abroad > 0 && m->abroad + m->ended == m->threads)
                go_abroad(m);
            else
                tell_deadlock(m);
        }
        still = m->moved || m->changed || m->rank >= 0 ? 0 : still + 1;
        if (still > 1 && m->ended < m->threads && m->status == cudaSuccess)
            tell_deadlock(m);
        struct timespec rest = {0, REST_NS};
        if (!m->moved && m->ended < m->threads && m->status == cudaSuccess)
            nanosleep(&rest, nullptr);
    }
    TSAN_TAKE(&m->ended_all);
    if (m->overlaps && m->status == cudaSuccess)
        look_for_waits(m);
}

QUIET void simt_on_fault(void)
{
    machine *m = simt_machine;
    tell_place(m);
    tell(m, ": thread %d used a bad address\n", (int)(m->running - m->fibers));
    give_up(m, cudaErrorIllegalAddress);
}

bool simt_make_fibers(machine *m, int threads)
{
    m->threads = threads;
    for (int i = 0; i < threads; i++) {
        if (!m->fibers[i].stack && !make_fiber(m, &m->fibers[i]))
            return false;
    }
    return true;
}

QUIET void simt_forget_fibers(machine *m)
{
    order_threads(m, m->fibers, ~0u, m->threads, &m->met);
    TSAN_TAKE(&m->met);
    for (int i = 0; i < m->threads; i++)
        renew(m, &m->fibers[i]);
}

/* ---- What is called from device code ---- */

QUIET const struct simt_party *simt_meet(struct simt_call call, uint32_t mask,
                                         struct simt_words given, bool orders)
{
    machine *m = simt_machine;
    fiber *self = m->running;
    warp *w = warp_of(m, self);
    uint32_t bit = 1u << (self - m->fibers) % SIMT_WARP;
    if (!(mask & bit) || mask & ~w->all)
        simt_fail(call, mask & bit ? "the mask has lanes that the block lacks"
                                   : "the mask lacks the lane that calls");
    if (self->party)
        self->party->readers--;
    self->party = nullptr;
    self->call = call;
    self->mask = mask;
    self->orders = orders;
    self->given = given;
    self->state = IN_WARP;
    w->waiting |= bit;
    m->moved = true;
    try_meeting(m, w, mask);
    while (self->state != READY || m->status != cudaSuccess)
        leave(m);
    return self->party;
}

/* Each lane leaves its factors in its fiber, in one of two places: when it comes to the same one
 * again, all lanes have been at the meeting in between, so that none reads it any more. */
QUIET void simt_multiply_add(struct simt_call call, double *c, const double *a, const double *b)
{
    machine *m = simt_machine;
    fiber *self = m->running;
    const fiber *lanes = lane_of(m, warp_of(m, self), 0);
    const int turn = self->factors_turn ^= 1, lane = (int)(self - lanes);
    for (int i = 0; i < 4; i++)
        self->factors[turn][i] = a[i];
    for (int i = 0; i < 2; i++)
        self->factors[turn][4 + i] = b[i];
    if (simt_meet(call, ~0u, simt_words{}, false)->lanes != ~0u)
        simt_fail(call, "a lane of the warp has ended");
    const fiber *rows = lanes + lane / 4 * 4, *columns = lanes + lane % 4 * 8;
    for (int k = 0; k < 8; k++) {
        const double *left = rows[k % 4].factors[turn] + k / 4 * 2;
        const double first = columns[k % 4].factors[turn][4 + k / 4];
        const double second = columns[4 + k % 4].factors[turn][4 + k / 4];
        c[0] = fma(left[0], first, c[0]);
        c[1] = fma(left[0], second, c[1]);
        c[2] = fma(left[1], first, c[2]);
        c[3] = fma(left[1], second, c[3]);
    }
}

QUIET struct simt_words simt_meet_block(struct simt_call call, bool given)
{
    machine *m = simt_machine;
    fiber *self = m->running;
    self->call = call;
    self->mask = ~0u;
    self->state = IN_BLOCK;
    m->arrived++;
    m->votes.word[0] += given;
    m->votes.word[1]++;
    m->moved = true;
    try_block(m);
    while (self->state != READY || m->status != cudaSuccess)
        leave(m);
    return self->got;
}

QUIET void simt_meet_cluster(struct simt_call call)
{
    machine *m = simt_machine;
    fiber *self = m->running;
    if (m->rank < 0)
        simt_fail(call, "the block is in no cluster");
    self->call = call;
    self->mask = ~0u;
    self->state = IN_CLUSTER;
    m->abroad++;
    m->moved = true;
    while (self->state != READY || m->status != cudaSuccess)
        leave(m);
}

void *simt_of_block(struct simt_call call, void *shared, unsigned rank)
{
    uintptr_t at = (uintptr_t)shared - (uintptr_t)cuda__memory;
    unsigned char *other = simt_cluster_memory(rank);
    if (at >= SIMT_SHARED_MAX || !other)
        simt_fail(call, other ? "the place is not in shared memory"
                              : "the cluster has no block of that rank");
    return other + at;
}

QUIET void simt_fail(struct simt_call call, const char *problem)
{
    machine *m = simt_machine;
    tell_place(m);
    tell(m, ": thread %d in %s, %s:%d: %s\n", (int)(m->running - m->fibers), call.name, call.file,
         call.line, problem);
    give_up(m, cudaErrorLaunchFailure);
}

QUIET void simt_pause_cluster(struct simt_call call)
{
    if (simt_cluster_failed())
        simt_fail(call, "another block of the cluster has failed");
    simt_machine->running->call = call;
    simt_machine->running->mask = ~0u;
    leave(simt_machine);
}

QUIET void simt_pause(void)
{
    simt_machine->changed = true; /* perhaps */
    leave(simt_machine);
}

QUIET void simt_note_change(void)
{
    simt_machine->changed = true;
}

QUIET void simt_note_wait(void)
{
    simt_machine->running->waited = true;
}
