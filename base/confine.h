/* base/confine.h: takes from this process what it does not need any more: new privileges, and calls
 * of the system that serve an intruder alone. The only door to libseccomp.
 *
 * A call that is not allowed fails with EPERM, as if the system had no such right to give; no list
 * ever kills. What a process starts later is confined like itself, and no one can take it back.
 *
 * Threads: all that the process has are confined at once; call it from any.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>

#include "base/error.h"

/* Builds for sanitizers confine nothing: those look into their own process, by ptrace and clone. */
#ifdef CONFINE_OFF
#define CONFINE_IS_BUILT false
#else
#define CONFINE_IS_BUILT true
#endif

enum confine_list {
    /* What is not listed is refused. No other program can be run, no process made, no memory made
     * executable, no socket made but of AF_UNIX; and no file system, kernel or other process be
     * touched. Sockets that are open stay as they are. */
    CONFINE_FRONT,
    /* What is listed is refused: to run a program, to look into processes, to change file systems,
     * name spaces or the kernel, sockets but of AF_UNIX and AF_NETLINK. A driver's library may do
     * the rest. */
    CONFINE_ENGINE,
    /* What is not listed is refused. Connections to the internet may be made, and files be read; no
     * program be run, no process made, no memory made executable, no file written, no socket
     * listened on. */
    CONFINE_POST
};

/* INTERNAL: the system does not do it (a kernel without seccomp, no memory); what it said is in the
 * words. Even then no new privileges come. */
ERROR_MUST_CHECK enum error confine_process(enum confine_list list, struct failure *failure);

#endif
