/* tests/sim/disk.c: see disk.h. Out of memory ends the program: it is a test. */
#include "tests/sim/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512
#define NAME_MAX_BYTES 160

/* A change of a file since its last sync: bytes written, or, without data, its new length. */
struct change {
    int64_t offset_bytes, bytes;
    uint8_t *data;
};

struct bytes {
    uint8_t *data;
    int64_t size, room;
};

struct inode {
    struct inode *next;
    struct bytes now, durable;
    struct change *changes;
    int count, room;
};

struct name {
    char path[NAME_MAX_BYTES];
    struct inode *inode;
};

/* Names, in no order. */
struct names {
    struct name *rows;
    int count, room;
};

/* A change of names: `to` is inode, or nothing when that is NULL; `from`, unless "", is nothing. */
struct entry {
    char from[NAME_MAX_BYTES], to[NAME_MAX_BYTES];
    struct inode *inode;
};

struct sim_disk {
    struct disk disk;
    uint64_t seed;
    struct inode *inodes;
    struct names now, durable;
    struct entry *entries; /* that are not durable, the oldest first */
    int entry_count, entry_room;
    int64_t cut_after, room;
    int fail_sync, open_files;
    bool is_off, lies;
};

struct disk_file {
    struct sim_disk *sim;
    struct inode *inode;
};

uint64_t sim_next(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t sim_below(uint64_t *seed, int64_t bound)
{
    return (int64_t)(sim_next(seed) % (uint64_t)bound);
}

static void *grow(void *rows, int count, int *room, size_t row_bytes)
{
    if (count < *room)
        return rows;
    *room = *room > 0 ? 2 * *room : 8;
    rows = realloc(rows, (size_t)*room * row_bytes);
    assert(rows);
    return rows;
}

/* ---- Bytes ---- */

static void set_size(struct bytes *bytes, int64_t size)
{
    if (size > bytes->room) {
        bytes->room = size > 2 * bytes->room ? size : 2 * bytes->room;
        bytes->data = realloc(bytes->data, (size_t)bytes->room);
        assert(bytes->data);
    }
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, (size_t)(size - bytes->size));
    bytes->size = size;
}

static void put_bytes(struct bytes *bytes, int64_t offset, const uint8_t *data, int64_t count)
{
    if (count == 0)
        return;
    if (offset + count > bytes->size)
        set_size(bytes, offset + count);
    memcpy(bytes->data + offset, data, (size_t)count);
}

static void note_change(struct inode *inode, int64_t offset, const void *data, int64_t count)
{
    inode->changes = grow(inode->changes, inode->count, &inode->room, sizeof *inode->changes);
    struct change *change = &inode->changes[inode->count++];
    *change = (struct change){.offset_bytes = offset, .bytes = count};
    if (data) {
        change->data = malloc((size_t)count + 1);
        assert(change->data);
        memcpy(change->data, data, (size_t)count);
    }
}

static void forget_changes(struct inode *inode)
{
    for (int i = 0; i < inode->count; i++)
        free(inode->changes[i].data);
    inode->count = 0;
}

static void apply(struct bytes *to, const struct change *change)
{
    if (change->data)
        put_bytes(to, change->offset_bytes, change->data, change->bytes);
    else
        set_size(to, change->offset_bytes);
}

static void apply_sectors(struct sim_disk *sim, struct bytes *to, const struct change *change)
{
    int64_t at = change->offset_bytes, end = at + change->bytes;
    while (at < end) {
        int64_t next = (at / SECTOR + 1) * SECTOR;
        next = next < end ? next : end;
        if (sim_below(&sim->seed, 2) == 0)
            put_bytes(to, at, change->data + (at - change->offset_bytes), next - at);
        at = next;
    }
}

static void lose(struct sim_disk *sim, struct inode *inode)
{
    int64_t how = sim_below(&sim->seed, 4);
    for (int i = 0; i < inode->count && how > 0; i++) {
        const struct change *change = &inode->changes[i];
        if (how == 1 || (how == 2 && sim_below(&sim->seed, 2) == 0))
            apply(&inode->durable, change);
        else if (how == 3 && change->data)
            apply_sectors(sim, &inode->durable, change);
        else if (how == 3 && sim_below(&sim->seed, 2) == 0)
            apply(&inode->durable, change);
    }
    forget_changes(inode);
    set_size(&inode->now, 0);
    put_bytes(&inode->now, 0, inode->durable.data, inode->durable.size);
}

/* ---- Names ---- */

static int find_name(const struct names *names, const char *path)
{
    for (int i = 0; i < names->count; i++) {
        if (strcmp(names->rows[i].path, path) == 0)
            return i;
    }
    return -1;
}

static void drop_name(struct names *names, const char *path)
{
    int at = find_name(names, path);
    if (at >= 0)
        names->rows[at] = names->rows[--names->count];
}

static void set_name(struct names *names, const char *path, struct inode *inode)
{
    int at = find_name(names, path);
    if (at < 0) {
        names->rows = grow(names->rows, names->count, &names->room, sizeof *names->rows);
        at = names->count++;
        snprintf(names->rows[at].path, NAME_MAX_BYTES, "%s", path);
    }
    names->rows[at].inode = inode;
}

static void apply_entry(struct names *names, const struct entry *entry)
{
    if (entry->from[0] != '\0')
        drop_name(names, entry->from);
    if (entry->inode)
        set_name(names, entry->to, entry->inode);
    else
        drop_name(names, entry->to);
}

static void change_names(struct sim_disk *sim, const char *from, const char *to,
                         struct inode *inode)
{
    assert(strlen(from) < NAME_MAX_BYTES && strlen(to) < NAME_MAX_BYTES);
    sim->entries = grow(sim->entries, sim->entry_count, &sim->entry_room, sizeof *sim->entries);
    struct entry *entry = &sim->entries[sim->entry_count++];
    memset(entry, 0, sizeof *entry);
    snprintf(entry->from, NAME_MAX_BYTES, "%s", from);
    snprintf(entry->to, NAME_MAX_BYTES, "%s", to);
    entry->inode = inode;
    apply_entry(&sim->now, entry);
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           strchr(path + length + 1, '/') == NULL;
}

static void sync_names(struct sim_disk *sim, const char *folder)
{
    int kept = 0;
    for (int i = 0; i < sim->entry_count; i++) {
        if (lies_in(sim->entries[i].to, folder))
            apply_entry(&sim->durable, &sim->entries[i]);
        else
            sim->entries[kept++] = sim->entries[i];
    }
    sim->entry_count = kept;
}

/* ---- Power ---- */

/* Counts a step; EIO without power. */
static int step(struct sim_disk *sim)
{
    if (sim->cut_after > 0 && --sim->cut_after == 0)
        sim->is_off = true;
    return sim->is_off ? EIO : 0;
}

void sim_disk_restart(struct sim_disk *sim)
{
    assert(sim->open_files == 0);
    for (struct inode *inode = sim->inodes; inode; inode = inode->next)
        lose(sim, inode);
    int64_t survive = sim_below(&sim->seed, sim->entry_count + 1);
    for (int i = 0; i < survive; i++)
        apply_entry(&sim->durable, &sim->entries[i]);
    sim->entry_count = 0;
    sim->now.count = 0;
    for (int i = 0; i < sim->durable.count; i++)
        set_name(&sim->now, sim->durable.rows[i].path, sim->durable.rows[i].inode);
    sim->is_off = false;
    sim->cut_after = 0;
}

void sim_disk_cut_after(struct sim_disk *sim, int64_t steps)
{
    sim->cut_after = steps;
}

bool sim_disk_is_off(const struct sim_disk *sim)
{
    return sim->is_off;
}

void sim_disk_fail_sync(struct sim_disk *sim, int syncs)
{
    sim->fail_sync = syncs;
}

void sim_disk_set_room(struct sim_disk *sim, int64_t bytes)
{
    sim->room = bytes;
}

void sim_disk_lie(struct sim_disk *sim, bool lies)
{
    sim->lies = lies;
}

bool sim_disk_has(struct sim_disk *sim, const char *path)
{
    return find_name(&sim->now, path) >= 0;
}

/* ---- The operations of a disk ---- */

static struct sim_disk *of(struct disk *disk)
{
    return (struct sim_disk *)disk;
}

static struct inode *make_inode(struct sim_disk *sim)
{
    struct inode *inode = calloc(1, sizeof *inode);
    assert(inode);
    inode->next = sim->inodes;
    sim->inodes = inode;
    return inode;
}

static int resize(struct disk_file *file, int64_t bytes)
{
    struct sim_disk *sim = file->sim;
    int64_t more = bytes - file->inode->now.size;
    if (more > 0 && sim->room >= 0) {
        if (more > sim->room)
            return ENOSPC;
        sim->room -= more;
    }
    set_size(&file->inode->now, bytes);
    return 0;
}

int sim_disk_truncate(struct disk_file *file, int64_t bytes)
{
    int status = step(file->sim);
    if (status == 0)
        status = resize(file, bytes);
    if (status == 0)
        note_change(file->inode, bytes, NULL, 0);
    return status;
}

static int file_open(struct disk *disk, const char *path, enum disk_mode mode,
                     struct disk_file **file)
{
    struct sim_disk *sim = of(disk);
    int status = mode == DISK_MAKE ? step(sim) : sim->is_off ? EIO : 0;
    if (status != 0)
        return status;
    int at = find_name(&sim->now, path);
    if (at < 0 && mode != DISK_MAKE)
        return ENOENT;
    struct disk_file *made = calloc(1, sizeof *made);
    assert(made);
    made->sim = sim;
    made->inode = at >= 0 ? sim->now.rows[at].inode : make_inode(sim);
    if (at < 0)
        change_names(sim, "", path, made->inode);
    if (mode == DISK_MAKE && made->inode->now.size > 0) {
        set_size(&made->inode->now, 0);
        note_change(made->inode, 0, NULL, 0);
    }
    sim->open_files++;
    *file = made;
    return 0;
}

static int file_allocate(struct disk_file *file, int64_t bytes)
{
    return bytes > file->inode->now.size ? sim_disk_truncate(file, bytes) : step(file->sim);
}

static int file_write(struct disk_file *file, int64_t offset, const void *data, int64_t bytes)
{
    int status = step(file->sim);
    if (status == 0 && offset + bytes > file->inode->now.size)
        status = resize(file, offset + bytes);
    if (status != 0)
        return status;
    put_bytes(&file->inode->now, offset, data, bytes);
    note_change(file->inode, offset, data, bytes);
    return 0;
}

static int file_read(struct disk_file *file, int64_t offset, void *data, int64_t bytes)
{
    if (file->sim->is_off)
        return EIO;
    if (offset + bytes > file->inode->now.size)
        return ENODATA;
    if (bytes > 0)
        memcpy(data, file->inode->now.data + offset, (size_t)bytes);
    return 0;
}

static int file_size(struct disk_file *file, int64_t *bytes)
{
    *bytes = file->inode->now.size;
    return file->sim->is_off ? EIO : 0;
}

static int file_sync(struct disk_file *file)
{
    struct sim_disk *sim = file->sim;
    int status = step(sim);
    if (status != 0 || sim->lies)
        return status;
    bool fails = sim->fail_sync == 0;
    if (sim->fail_sync >= 0)
        sim->fail_sync--;
    for (int i = 0; i < file->inode->count && !fails; i++)
        apply(&file->inode->durable, &file->inode->changes[i]);
    forget_changes(file->inode);
    return fails ? EIO : 0;
}

static int file_descriptor(const struct disk_file *file)
{
    (void)file;
    return -1;
}

static void file_close(struct disk_file **file)
{
    if (!*file)
        return;
    (*file)->sim->open_files--;
    free(*file);
    *file = NULL;
}

static int path_rename(struct disk *disk, const char *from, const char *to)
{
    struct sim_disk *sim = of(disk);
    int status = step(sim), at = find_name(&sim->now, from);
    if (status == 0 && at < 0)
        status = ENOENT;
    if (status == 0)
        change_names(sim, from, to, sim->now.rows[at].inode);
    return status;
}

static int path_remove(struct disk *disk, const char *path)
{
    struct sim_disk *sim = of(disk);
    int status = step(sim);
    if (status == 0 && find_name(&sim->now, path) < 0)
        status = ENOENT;
    if (status == 0)
        change_names(sim, "", path, NULL);
    return status;
}

/* Folders are there whenever a file is in them. */
static int folder_make(struct disk *disk, const char *path)
{
    (void)path;
    return of(disk)->is_off ? EIO : 0;
}

static int folder_sync(struct disk *disk, const char *path)
{
    struct sim_disk *sim = of(disk);
    int status = step(sim);
    if (status == 0 && !sim->lies)
        sync_names(sim, path);
    return status;
}

static int folder_list(struct disk *disk, const char *folder,
                       void (*each)(void *context, const char *name, int64_t age_ms), void *context)
{
    struct sim_disk *sim = of(disk);
    if (sim->is_off)
        return EIO;
    for (int i = sim->now.count - 1; i >= 0; i--) {
        char path[NAME_MAX_BYTES];
        memcpy(path, sim->now.rows[i].path, sizeof path);
        if (lies_in(path, folder))
            each(context, path + strlen(folder) + 1, INT64_MAX);
    }
    return 0;
}

static int path_free_bytes(struct disk *disk, const char *path, int64_t *bytes)
{
    (void)path;
    *bytes = of(disk)->room >= 0 ? of(disk)->room : INT64_MAX;
    return of(disk)->is_off ? EIO : 0;
}

static const struct disk_ops ops = {
    .open = file_open,
    .allocate = file_allocate,
    .write = file_write,
    .read = file_read,
    .size = file_size,
    .sync = file_sync,
    .descriptor = file_descriptor,
    .close = file_close,
    .rename = path_rename,
    .remove = path_remove,
    .make_folder = folder_make,
    .sync_folder = folder_sync,
    .list = folder_list,
    .free_bytes = path_free_bytes,
};

struct sim_disk *sim_disk_create(uint64_t seed)
{
    struct sim_disk *sim = calloc(1, sizeof *sim);
    assert(sim);
    *sim = (struct sim_disk){.disk.ops = &ops, .seed = seed, .room = -1, .fail_sync = -1};
    return sim;
}

void sim_disk_destroy(struct sim_disk **sim)
{
    struct sim_disk *old = *sim;
    if (!old)
        return;
    *sim = NULL;
    assert(old->open_files == 0);
    while (old->inodes) {
        struct inode *inode = old->inodes;
        old->inodes = inode->next;
        forget_changes(inode);
        free(inode->changes);
        free(inode->now.data);
        free(inode->durable.data);
        free(inode);
    }
    free(old->now.rows);
    free(old->durable.rows);
    free(old->entries);
    free(old);
}

struct disk *sim_disk_of(struct sim_disk *sim)
{
    return &sim->disk;
}
