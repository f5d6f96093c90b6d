/* base/client.c: see client.h. Threads: pure functions. */
#include "base/client.h"

#include <assert.h>
#include <string.h>

static const char *const role_names[] = {
#define CLIENT_ROLE_NAME(id, name) [CLIENT_ROLE_NUMBER_##id] = (name),
    CLIENT_ROLE_TABLE(CLIENT_ROLE_NAME)
#undef CLIENT_ROLE_NAME
};

const struct client client_anyone = {.roles = CLIENT_ROLES_ALL & ~CLIENT_ADMIN};

bool client_may(const struct client *client, enum client_role role)
{
    return (client->roles & ((unsigned)role | CLIENT_ADMIN)) != 0;
}

unsigned client_role_find(const char *name, size_t length)
{
    for (int i = 0; i < CLIENT_ROLE_COUNT; i++)
        if (strlen(role_names[i]) == length && memcmp(role_names[i], name, length) == 0)
            return 1u << i;
    return 0;
}

const char *client_role_name(enum client_role role)
{
    for (int i = 0; i < CLIENT_ROLE_COUNT; i++)
        if ((unsigned)role == 1u << i)
            return role_names[i];
    assert(!"one role");
    return "";
}

bool client_is_name(const char *name, size_t length)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";
    if (length == 0 || length >= CLIENT_NAME_BYTES || strchr("._-@", name[0]) != NULL)
        return false;
    for (size_t i = 0; i < length; i++)
        if (memchr(plain, name[i], sizeof plain - 1) == NULL)
            return false;
    return true;
}
