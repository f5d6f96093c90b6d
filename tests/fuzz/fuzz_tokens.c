/* tests/fuzz/fuzz_tokens.c: the token file. The input is its text.
 *
 * What is accepted has only clients with a name of their own, a token of their own and a role, and
 * limits within their bounds; what is refused names the file and says nothing of the line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/codec.h"
#include "server/http/token_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_client(const struct token_file_row *rows, int count, int i)
{
    const struct client *client = &rows[i].client;
    const struct client_limits *limits = &client->limits;
    FUZZ_CHECK(client_is_name(client->name, strlen(client->name)));
    FUZZ_CHECK(client->roles != 0 && (client->roles & ~(unsigned)CLIENT_ROLES_ALL) == 0);
    FUZZ_CHECK(limits->requests >= 0 && limits->rate >= 0 && limits->bytes >= 0);
    FUZZ_CHECK(limits->device_ns >= 0 && limits->jobs >= 0 && limits->spool_bytes >= 0);
    for (int k = i + 1; k < count; k++)
        FUZZ_CHECK(strcmp(rows[k].client.name, client->name) != 0 &&
                   memcmp(rows[k].digest, rows[i].digest, DIGEST_BYTES) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct token_file_row *rows = NULL;
    struct failure failure = {0};
    int count = 0;
    char *text = malloc(size + 1); /* of just this size, for the sanitizer */
    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    enum error error = token_file_parse(text, size, "file", &rows, &count, &failure);
    if (error == ERROR_NONE) {
        FUZZ_CHECK(count > 0 && count <= CLIENTS_MAX);
        for (int i = 0; i < count; i++)
            check_client(rows, count, i);
    } else {
        FUZZ_CHECK(error == ERROR_BAD_OPTION && strncmp(failure.detail, "file:", 5) == 0);
    }
    free(rows);
    free(text);
    return 0;
}
