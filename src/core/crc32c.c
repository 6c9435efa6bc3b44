/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C: the processor's own instruction where it has one, else eight bytes a step by table. Owns
 * nothing. Chosen over CRC-32 for its better distance at the lengths of a record, and for that
 * instruction; a checksum against torn and rotten bytes, not against an adversary.
 */
#include "core/record.h"

#include "core/crc32c_table.h"

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *p, size_t left)
{
    for (; left >= 8; left -= 8, p += 8) {
        uint32_t low = load32(p) ^ crc;
        uint32_t high = load32(p + 4);
        crc = cfoil_crc32c_table[7][low & 255] ^ cfoil_crc32c_table[6][low >> 8 & 255] ^
              cfoil_crc32c_table[5][low >> 16 & 255] ^ cfoil_crc32c_table[4][low >> 24] ^
              cfoil_crc32c_table[3][high & 255] ^ cfoil_crc32c_table[2][high >> 8 & 255] ^
              cfoil_crc32c_table[1][high >> 16 & 255] ^ cfoil_crc32c_table[0][high >> 24];
    }
    for (; left > 0; left--, p++) {
        crc = crc >> 8 ^ cfoil_crc32c_table[0][(crc ^ *p) & 255];
    }
    return crc;
}

#if defined(__x86_64__)

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *p,
                                                                     size_t left)
{
    uint64_t wide = crc;
    uint64_t word;

    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; left > 0; left--, p++) {
        crc = __builtin_ia32_crc32qi(crc, *p);
    }
    return crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *p, size_t left)
{
    return crc_by_table(crc, p, left);
}

#endif

uint32_t cfoil_crc32c_by_table(uint32_t seed, struct cfoil_bytes bytes)
{
    return ~crc_by_table(~seed, bytes.data, bytes.len);
}

uint32_t cfoil_crc32c(uint32_t seed, struct cfoil_bytes bytes)
{
    if (has_instruction()) {
        return ~crc_by_instruction(~seed, bytes.data, bytes.len);
    }
    return cfoil_crc32c_by_table(seed, bytes);
}
