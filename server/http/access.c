/* server/http/access.c: see access.h. */
#include "server/http/access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/trusted_file.h"
#include "server/http/guard.h"
#include "server/http/token_file.h"

struct access_table {
    int64_t users;               /* who hold it, and access while it is in force; under its lock */
    struct token_file_row *rows; /* [CLIENTS_MAX] */
    int count;
    uint64_t heads[CLIENTS_MAX];              /* the digests' first bytes */
    struct trusted_file secrets[CLIENTS_MAX]; /* of callbacks; data NULL: none */
};

struct access {
    const char *path;
    struct trusted_file_mark mark; /* of the file as it was read last */
    struct access_bind bind;
    pthread_mutex_t lock; /* guards the tables' users */
    _Atomic(struct access_table *) current;
};

/* ---- Tables ---- */

static uint64_t head_of(const unsigned char digest[DIGEST_BYTES])
{
    uint64_t head;
    memcpy(&head, digest, sizeof head);
    return head;
}

static void free_table(struct access_table *table)
{
    for (int i = 0; table != NULL && i < CLIENTS_MAX; i++)
        trusted_file_forget(&table->secrets[i]);
    if (table != NULL)
        free(table->rows);
    free(table);
}

/* The line's end that editors add is no part of a secret. */
static enum error read_secret(const char *path, const struct token_file_row *row,
                              struct trusted_file *secret, struct failure *failure)
{
    struct failure why = {0};
    *secret = (struct trusted_file){.path = row->secret_path, .secret = true};
    enum error error = trusted_file_read(secret, &why);
    while (error == ERROR_NONE && secret->size > 0 &&
           (secret->data[secret->size - 1] == '\n' || secret->data[secret->size - 1] == '\r'))
        secret->size--;
    if (error == ERROR_NONE &&
        (secret->size < CALLBACK_SECRET_MIN || secret->size > CALLBACK_SECRET_MAX))
        error = trusted_file_refuse(secret, "a secret has 16 to 1024 bytes", &why);
    if (error == ERROR_NONE)
        return ERROR_NONE;
    return failure_set(failure, error, "%.120s:%d: callback-secret-file %.200s", path, row->line,
                       why.detail);
}

static enum error read_secrets(const char *path, struct access_table *table,
                               struct failure *failure)
{
    enum error error = ERROR_NONE;
    for (int i = 0; i < table->count && error == ERROR_NONE; i++)
        if (table->rows[i].secret_path[0] != '\0')
            error = read_secret(path, &table->rows[i], &table->secrets[i], failure);
    return error;
}

/* NULL: *error says why. */
static struct access_table *read_table(const char *path, enum error *error, struct failure *failure)
{
    struct trusted_file file = {.flag = "token-file", .path = path};
    struct access_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        *error = failure_set(failure, ERROR_INTERNAL, "out of memory");
        return NULL;
    }
    *error = trusted_file_read(&file, failure);
    if (*error == ERROR_NONE)
        *error = token_file_parse(file.data, file.size, path, &table->rows, &table->count, failure);
    trusted_file_forget(&file);
    if (*error == ERROR_NONE)
        *error = read_secrets(path, table, failure);
    if (*error != ERROR_NONE) {
        free_table(table);
        return NULL;
    }
    for (int i = 0; i < table->count; i++)
        table->heads[i] = head_of(table->rows[i].digest);
    return table;
}

/* With the lock held. table: NULL: none. */
static void drop_user(struct access_table *table)
{
    if (table != NULL && --table->users == 0)
        free_table(table);
}

/* ---- Life ---- */

static bool bind_all(const struct access *access, struct access_table *table)
{
    bool bound = true;
    for (int i = 0; i < table->count && bound && access->bind.bind != NULL; i++)
        bound = access->bind.bind(access->bind.context, &table->rows[i].client);
    return bound;
}

bool access_set_bind(struct access *access, const struct access_bind *bind)
{
    access->bind = *bind;
    return bind_all(access, access->current);
}

static void put_in_force(struct access *access, struct access_table *fresh)
{
    pthread_mutex_lock(&access->lock);
    struct access_table *old = access->current;
    fresh->users = 1;
    access->current = fresh;
    drop_user(old);
    pthread_mutex_unlock(&access->lock);
}

enum error access_reload(struct access *access, struct failure *failure)
{
    enum error error;
    access->mark = trusted_file_mark(access->path);
    struct access_table *fresh = read_table(access->path, &error, failure);
    if (fresh == NULL)
        return error;
    if (!bind_all(access, fresh)) {
        free_table(fresh);
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    }
    put_in_force(access, fresh);
    return ERROR_NONE;
}

enum error access_create(const char *path, struct access **result, struct failure *failure)
{
    struct access *access = calloc(1, sizeof *access);
    if (access == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    access->path = path;
    pthread_mutex_init(&access->lock, NULL);
    enum error error = access_reload(access, failure);
    if (error == ERROR_NONE)
        *result = access;
    else
        access_destroy(&access);
    return error;
}

void access_destroy(struct access **access)
{
    if (*access == NULL)
        return;
    free_table((*access)->current);
    pthread_mutex_destroy(&(*access)->lock);
    free(*access);
    *access = NULL;
}

bool access_has_changed(const struct access *access)
{
    struct trusted_file_mark mark = trusted_file_mark(access->path);
    return !trusted_file_is_same(&mark, &access->mark);
}

bool access_secret(const struct access *access, const char *name, struct callback_secret *secret)
{
    const struct access_table *table = access->current;
    for (int i = 0; i < table->count; i++) {
        if (table->secrets[i].data == NULL || strcmp(table->rows[i].client.name, name) != 0)
            continue;
        *secret = (struct callback_secret){table->secrets[i].data, table->secrets[i].size};
        return true;
    }
    return false;
}

int access_count(struct access *access)
{
    return atomic_load(&access->current)->count;
}

/* ---- Lookup ---- */

void access_hold(struct access *access, struct access_table **held)
{
    /* A table that is held is not freed, so that no other has its address. */
    if (atomic_load_explicit(&access->current, memory_order_acquire) == *held)
        return;
    pthread_mutex_lock(&access->lock);
    drop_user(*held);
    *held = access->current;
    (*held)->users++;
    pthread_mutex_unlock(&access->lock);
}

void access_let_go(struct access *access, struct access_table **held)
{
    if (*held == NULL)
        return;
    pthread_mutex_lock(&access->lock);
    drop_user(*held);
    pthread_mutex_unlock(&access->lock);
    *held = NULL;
}

/* Takes the same time for every token of a length: each client is looked at, by the first bytes of
 * its digest, and the whole digest of one is compared. */
const struct client *access_find(const struct access_table *table, const char *token, size_t length)
{
    unsigned char digest[DIGEST_BYTES];
    if (length == 0 || length > ACCESS_TOKEN_MAX || !digest_sha256(token, length, digest))
        return NULL;
    uint64_t head = head_of(digest);
    unsigned found = 0;
    for (int i = 0; i < table->count; i++)
        found |= (0u - (table->heads[i] == head)) & (unsigned)i;
    const struct token_file_row *row = &table->rows[found];
    return digest_equal(row->digest, digest) ? &row->client : NULL;
}

const char *access_bearer(const char *value, size_t length, size_t *token_length)
{
    static const char scheme[] = "Bearer";
    const size_t bytes = sizeof scheme - 1;
    if (length <= bytes || !http_guard_is(value, bytes, scheme) || value[bytes] != ' ')
        return NULL;
    const char *token = value + bytes, *end = value + length;
    while (token < end && *token == ' ')
        token++;
    while (end > token && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *token_length = (size_t)(end - token);
    return token < end ? token : NULL;
}
