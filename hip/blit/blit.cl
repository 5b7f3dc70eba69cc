// Copies and fills by shader. Compiled for every target by build.sh; nothing but clang is used.
//
// A grid is bounded whatever the size: `lanes` work-items in workgroups of 256 walk over the bytes,
// 16 of them at a time. The host computes what is the same for all lanes. All sizes are in bytes,
// all offsets 64 bits wide. KFD puts every compute queue into the unaligned access mode (docs/ABI.md
// §Blit kernels), so 16 bytes can be loaded from and stored to any address.

#define LOOSE(name, type) typedef struct __attribute__((packed)) { type bytes; } name
LOOSE(Loose, uint4);
LOOSE(Loose8, ulong);
LOOSE(Loose4, uint);
LOOSE(Loose2, ushort);

#define GROUP 256
#define KERNEL kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

static uint lane_id(void) {
    return __builtin_amdgcn_workgroup_id_x() * GROUP + __builtin_amdgcn_workitem_id_x();
}

// The byte at `index` of 16 bytes.
static uchar byte_of(uint4 bytes, uint index) {
    uint low = index & 4 ? bytes.y : bytes.x;
    uint high = index & 4 ? bytes.w : bytes.z;
    return (index & 8 ? high : low) >> (index & 3) * 8;
}

KERNEL void copy(global uchar *dst, global const uchar *src, ulong bytes, uint lanes) {
    uint lane = lane_id();
    ulong head = -(ulong)dst & 15;
    head = head < bytes ? head : bytes;
    ulong units = (bytes - head) / 16;
    global uint4 *to = (global uint4 *)(dst + head);
    global const Loose *from = (global const Loose *)(src + head);
    ulong step = lanes, unit = lane;
    // Four loads are on their way before the first store waits for one.
    for (; unit + 3 * step < units; unit += 4 * step) {
        uint4 a = from[unit].bytes;
        uint4 b = from[unit + step].bytes;
        uint4 c = from[unit + 2 * step].bytes;
        uint4 d = from[unit + 3 * step].bytes;
        to[unit] = a;
        to[unit + step] = b;
        to[unit + 2 * step] = c;
        to[unit + 3 * step] = d;
    }
    for (; unit < units; unit += step)
        to[unit] = from[unit].bytes;
    if (lane < head)
        dst[lane] = src[lane];
    ulong tail = head + units * 16;
    if (lane < bytes - tail)
        dst[tail + lane] = src[tail + lane];
}

// `pattern` is what an aligned block of 16 bytes is to hold.
KERNEL void fill(global uchar *dst, ulong bytes, uint4 pattern, uint lanes) {
    uint lane = lane_id();
    ulong head = -(ulong)dst & 15;
    head = head < bytes ? head : bytes;
    ulong units = (bytes - head) / 16;
    global uint4 *to = (global uint4 *)(dst + head);
    for (ulong unit = lane; unit < units; unit += lanes)
        to[unit] = pattern;
    ulong tail = head + units * 16;
    if (lane < head)
        dst[lane] = byte_of(pattern, (uint)(ulong)(dst + lane) & 15);
    if (lane < bytes - tail)
        dst[tail + lane] = byte_of(pattern, lane);
}

// How rows are shared out: a lane moves one segment of a row, then the one a step further. The last
// segment of a row ends where the row does and may overlap the one before.
typedef struct {
    uint count[3]; // segments in a row, rows, planes; each below 2^31
    uint step[3];  // each below its count, but for the last
    uint unit;     // bytes of a segment: 1, 2, 4, 8 or 16
    uint reserved;
    ulong last;    // offset of the last segment in its row
} Walk;

typedef struct { uint x, y, z; } Place;

static Place first(const Walk *walk) {
    uint lane = lane_id();
    uint row = lane / walk->count[0];
    Place place = { lane % walk->count[0], row % walk->count[1], row / walk->count[1] };
    return place;
}

static void advance(Place *place, const Walk *walk) {
    uint x = place->x + walk->step[0];
    uint carry = x >= walk->count[0];
    place->x = x - (carry ? walk->count[0] : 0);
    uint y = place->y + walk->step[1] + carry;
    carry = y >= walk->count[1];
    place->y = y - (carry ? walk->count[1] : 0);
    place->z += walk->step[2] + carry;
}

static bool is_last(const Place *place, const Walk *walk) {
    return place->x == walk->count[0] - 1;
}

static ulong offset(const Place *place, const Walk *walk, ulong pitch, ulong slice) {
    ulong x = is_last(place, walk) ? walk->last : (ulong)place->x * walk->unit;
    return x + place->y * pitch + place->z * slice;
}

KERNEL void copy_rows(
    global uchar *dst, ulong dst_pitch, ulong dst_slice,
    global const uchar *src, ulong src_pitch, ulong src_slice, Walk walk
) {
    for (Place at = first(&walk); at.z < walk.count[2]; advance(&at, &walk)) {
        global uchar *to = dst + offset(&at, &walk, dst_pitch, dst_slice);
        global const uchar *from = src + offset(&at, &walk, src_pitch, src_slice);
        switch (walk.unit) {
        case 16: ((global Loose *)to)->bytes = ((global const Loose *)from)->bytes; break;
        case 8: ((global Loose8 *)to)->bytes = ((global const Loose8 *)from)->bytes; break;
        case 4: ((global Loose4 *)to)->bytes = ((global const Loose4 *)from)->bytes; break;
        case 2: ((global Loose2 *)to)->bytes = ((global const Loose2 *)from)->bytes; break;
        default: *to = *from;
        }
    }
}

// `pattern` is what the segments of a row hold, `last_pattern` what its last one does.
KERNEL void fill_rows(
    global uchar *dst, ulong pitch, ulong slice, Walk walk, uint4 pattern, uint4 last_pattern
) {
    for (Place at = first(&walk); at.z < walk.count[2]; advance(&at, &walk)) {
        global uchar *to = dst + offset(&at, &walk, pitch, slice);
        uint4 bytes = is_last(&at, &walk) ? last_pattern : pattern;
        switch (walk.unit) {
        case 16: ((global Loose *)to)->bytes = bytes; break;
        case 8: ((global Loose8 *)to)->bytes = (ulong)bytes.y << 32 | bytes.x; break;
        case 4: ((global Loose4 *)to)->bytes = bytes.x; break;
        case 2: ((global Loose2 *)to)->bytes = (ushort)bytes.x; break;
        default: *to = (uchar)bytes.x;
        }
    }
}
