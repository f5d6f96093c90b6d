/* base/digest.c: see digest.h. */
#include "base/digest.h"

#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

bool digest_sha256(const void *data, size_t bytes, unsigned char digest[DIGEST_BYTES])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, data, bytes, digest) == 0;
}

bool digest_hmac(const void *key, size_t key_bytes, const void *data, size_t bytes,
                 unsigned char digest[DIGEST_BYTES])
{
    return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_bytes, data, bytes, digest) == 0;
}

struct digest_stream {
    gnutls_hash_hd_t hash;
    bool failed;
};

struct digest_stream *digest_begin(void)
{
    struct digest_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL || gnutls_hash_init(&stream->hash, GNUTLS_DIG_SHA256) == 0)
        return stream;
    if (stream != NULL)
        gnutls_free(stream->hash); /* 3.7.9 leaves it when its second allocation fails */
    free(stream);
    return NULL;
}

void digest_add(struct digest_stream *stream, const void *data, size_t bytes)
{
    if (!stream->failed && bytes > 0)
        stream->failed = gnutls_hash(stream->hash, data, bytes) != 0;
}

bool digest_end(struct digest_stream **stream, unsigned char digest[DIGEST_BYTES])
{
    if (*stream == NULL)
        return false;
    gnutls_hash_deinit((*stream)->hash, digest);
    bool good = !(*stream)->failed;
    free(*stream);
    *stream = NULL;
    return good;
}

void digest_show(const unsigned char digest[DIGEST_BYTES], char hex[DIGEST_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < DIGEST_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[DIGEST_HEX_BYTES - 1] = '\0';
}

static int digit(char hex)
{
    if (hex >= '0' && hex <= '9')
        return hex - '0';
    char lower = (char)(hex | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool digest_read(const char *hex, size_t length, unsigned char digest[DIGEST_BYTES])
{
    if (length != DIGEST_HEX_BYTES - 1)
        return false;
    for (int i = 0; i < DIGEST_BYTES; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool digest_equal(const unsigned char a[DIGEST_BYTES], const unsigned char b[DIGEST_BYTES])
{
    volatile unsigned char difference = 0; /* no compiler may leave the loop early */
    for (int i = 0; i < DIGEST_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}
