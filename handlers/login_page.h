/* handlers/login_page.h: handlers/login_page.html, made part of the program by the Makefile.
 * Constant. */
#ifndef HANDLERS_LOGIN_PAGE_H
#define HANDLERS_LOGIN_PAGE_H

#include <stddef.h>

extern const unsigned char login_page_html[];
extern const size_t login_page_html_bytes;

#endif
