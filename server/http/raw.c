/* server/http/raw.c: see raw.h. Threads: the exchange's loop. */
#include "server/http/raw.h"

#include <sys/socket.h>
#include <time.h>

void http_raw_compose(struct text *text, const struct exchange_reply *reply, const char *id,
                      const char *cors, bool head)
{
    size_t length = 0;
    for (int i = 0; i < reply->segment_count; i++)
        length += reply->segments[i].iov_len;
    /* The reason phrase may be empty (RFC 9112, 4). */
    text_printf(text, "HTTP/1.1 %d \r\nConnection: close\r\nContent-Length: %zu\r\n", reply->status,
                length);
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL &&
        strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc) != 0)
        text_puts(text, date);
    for (int i = 0; i < reply->field_count; i++)
        text_printf(text, "%s: %s\r\n", reply->fields[i].name, reply->fields[i].value);
    if (cors != NULL)
        text_printf(text, "Vary: Origin\r\nAccess-Control-Allow-Origin: %s\r\n", cors);
    text_printf(text, "X-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n\r\n", id);
    for (int i = 0; !head && i < reply->segment_count; i++)
        text_append(text, reply->segments[i].iov_base, reply->segments[i].iov_len);
}

bool http_raw_send(int fd, const struct text *text)
{
    if (text->failed || text->data == NULL)
        return false;
    ssize_t sent = send(fd, text->data, text->length, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == (ssize_t)text->length;
}
