/* handlers/live_page.h: the style and the script of the page of `/`, made part of the program by
 * the Makefile. Constant. */
#ifndef HANDLERS_LIVE_PAGE_H
#define HANDLERS_LIVE_PAGE_H

#include <stddef.h>

extern const unsigned char live_page_css[], live_page_js[];
extern const size_t live_page_css_bytes, live_page_js_bytes;

#endif
