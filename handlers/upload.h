/* handlers/upload.h: an .npy that is written to the spool as it comes, never through the arena.
 *
 *     HEAD      the array's head is awaited; with it everything is refused that can be
 *     OPENING   the pool takes room in the spool; the door is paused
 *     FILLING   the door fills one window while the pool writes the other one
 *     ENDING    the pool writes the last bytes, and gives the file its name
 *
 * Memory: two windows, whatever the array's length.
 *
 * Threads: the exchange's loop, but for what the pool writes.
 * Ownership: an upload belongs to its posting. One that is left while the pool works on it takes
 * its file away when the pool lets go.
 */
#ifndef HANDLERS_UPLOAD_H
#define HANDLERS_UPLOAD_H

#include "handlers/posting.h"

#define UPLOADS_MAX 32 /* at once */

/* Makes the exchange's sink a window. FULL: there are as many uploads as are taken. */
ERROR_MUST_CHECK enum error handlers__upload_begin(struct inference *inference,
                                                   struct failure *failure);
/* See handlers_make_room. When it returns false the exchange may have been answered. */
ERROR_MUST_CHECK bool handlers__upload_make_room(struct inference *inference, int64_t bytes);
/* The body is complete. */
void handlers__upload_run(struct inference *inference);
/* The posting gives it up, and it nulls *upload, which may be NULL. */
void handlers__upload_leave(struct upload **upload);

#endif
