#include "src/files/pdb_match.h"

#include "util/sha256.h"

enum {
    FILE_SIZE_MAX = 256 * 1024 * 1024,
    GUID_SIZE = 16, /* of the id, whose rest is the stamp */
};

bool pdb_match_has_id(const struct pe_debug *debug, const uint8_t id[PORTABLE_PDB_ID_SIZE])
{
    /* A PDB that was converted from the Windows format keeps only the GUID of the id. */
    size_t id_size = debug->portable ? sizeof debug->id : GUID_SIZE;
    return !debug->has_pdb || memcmp(id, debug->id, id_size) == 0;
}

static const char other_id[] = "it has another id";

const char *pdb_match_tag(const struct pe_debug *debug, const struct file_tag *tag)
{
    if (tag->kind != FILE_TAG_PDB || tag->refused)
        return tag->kind == FILE_TAG_PDB ? tag->refused : NULL;
    return pdb_match_has_id(debug, tag->id) ? NULL : other_id;
}

/* Notes that no image can use a PDB. Returns why. */
static const char *refuse(struct file_candidate *candidate, const char *reason)
{
    file_tag_set(&candidate->tag, FILE_TAG_PDB, "", 0);
    return candidate->tag.refused = reason;
}

const char *pdb_match_id(const struct pe_debug *debug, struct file_candidate *candidate, struct portable_pdb *ret)
{
    static const char older[] = "Microsoft C/C++ MSF 7.00";
    if (candidate->size >= sizeof older && memcmp(candidate->bytes, older, sizeof older - 1) == 0)
        return refuse(candidate, "it has the format of Windows PDBs, which is not read");
    if (portable_pdb_open(candidate->bytes, (size_t)candidate->size, ret) < 0)
        return refuse(candidate, "it is not a portable PDB, or is damaged");
    file_tag_set(&candidate->tag, FILE_TAG_PDB, ret->id, sizeof ret->id);
    return pdb_match_has_id(debug, ret->id) ? NULL : other_id;
}

/* Hashes a PDB as its checksum does: with zeros in place of the id. */
static void hash_pdb(const struct file_candidate *candidate, const struct portable_pdb *pdb, uint8_t ret[SHA256_SIZE])
{
    static const uint8_t zeros[PORTABLE_PDB_ID_SIZE];
    uint64_t after = pdb->id_offset + sizeof zeros;
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, candidate->bytes, (size_t)pdb->id_offset);
    sha256_add(&hash, zeros, sizeof zeros);
    sha256_add(&hash, candidate->bytes + after, (size_t)(candidate->size - after));
    sha256_end(&hash, ret);
}

/* What of an image the hash of a PDB is compared with. */
enum hash_match { HASH_DIFFERS, HASH_IS_UNKNOWN, HASH_MATCHES };

/* Whether the id was derived from a hash: its version bits and the top bit of the stamp are fixed. */
static bool is_id_of_hash(const uint8_t id[PORTABLE_PDB_ID_SIZE], const uint8_t digest[SHA256_SIZE])
{
    uint8_t derived[PORTABLE_PDB_ID_SIZE];
    memcpy(derived, digest, sizeof derived);
    derived[7] = (derived[7] & 0x0f) | 0x40;
    derived[8] = (derived[8] & 0x3f) | 0x80;
    derived[19] |= 0x80;
    return memcmp(id, derived, sizeof derived) == 0;
}

/* Compares the hash with the checksums of a kind that is known here. Without one, the id can be a hash, too. */
static enum hash_match compare_hash(const struct pe_debug *debug, const uint8_t id[PORTABLE_PDB_ID_SIZE],
                                    const uint8_t digest[SHA256_SIZE])
{
    bool known = false;
    for (unsigned i = 0; i < debug->checksum_count; i++) {
        const struct pe_checksum *checksum = &debug->checksums[i];
        if (strcmp(checksum->algorithm, "SHA256") != 0 || checksum->size != SHA256_SIZE)
            continue;
        known = true;
        if (memcmp(digest, checksum->bytes, SHA256_SIZE) == 0)
            return HASH_MATCHES;
    }
    return known ? HASH_DIFFERS : is_id_of_hash(id, digest) ? HASH_MATCHES : HASH_IS_UNKNOWN;
}

const char *pdb_match_file(const struct pe_debug *debug, struct file_candidate *candidate, struct pdb_budget *budget,
                           struct work *work, struct portable_pdb *ret, bool *ret_confirmed)
{
    uint8_t digest[SHA256_SIZE];
    *ret_confirmed = false;
    if (candidate->size > FILE_SIZE_MAX)
        return refuse(candidate, "it is larger than 256 MiB");
    const char *reason = pdb_match_id(debug, candidate, ret);
    if (reason || !debug->portable)
        return reason;
    reason = pdb_budget_take_hashing(budget, work, candidate->size);
    if (reason)
        return debug->checksum_count ? reason : NULL;
    hash_pdb(candidate, ret, digest);
    enum hash_match match = compare_hash(debug, ret->id, digest);
    *ret_confirmed = match == HASH_MATCHES;
    return match == HASH_DIFFERS ? "it has the right id, but another checksum" : NULL;
}
