/* callback/sign.c: see sign.h. */
#include "callback/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMESTAMP_BYTES 24 /* with the point, and a NUL */

bool callback_sign(const struct callback_secret *secret, int64_t timestamp_s, const char *body,
                   size_t body_bytes, char signature[CALLBACK_SIGNATURE_BYTES])
{
    static const char scheme[] = "sha256=";
    unsigned char digest[DIGEST_BYTES] = {0};
    char *text = malloc(TIMESTAMP_BYTES + body_bytes);
    if (text == NULL)
        return false;
    int length = snprintf(text, TIMESTAMP_BYTES, "%lld.", (long long)timestamp_s);
    memcpy(text + length, body, body_bytes);
    bool good = digest_hmac(secret->data, secret->bytes, text, (size_t)length + body_bytes, digest);
    free(text);
    memcpy(signature, scheme, sizeof scheme - 1);
    digest_show(digest, signature + sizeof scheme - 1);
    return good;
}
