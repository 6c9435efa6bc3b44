/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding (RFC 3986): every byte but the unreserved characters becomes %XX. */
#ifndef CFOIL_POLICY_PERCENT_H
#define CFOIL_POLICY_PERCENT_H

#include <stddef.h>
#include <stdint.h>

#define CFOIL_PERCENT_GROWTH 3 /* bytes that one byte can become */

/* Writes one byte's spelling, without a NUL; returns its length, 1 or 3. */
size_t cfoil_percent_put(uint8_t byte, char out[CFOIL_PERCENT_GROWTH]);

#endif
