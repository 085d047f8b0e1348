/* Hashes of shapes, tensors and attributes. */
#include "calib/attr_hash.h"

#include "base/tensor/number.h"

static void hash_add_shape(struct tare_hash *hash, const struct tare_shape *shape) {
    tare_hash_add_u64(hash, (uint64_t)shape->rank);
    for (int i = 0; i < shape->rank; i++)
        tare_hash_add_u64(hash, (uint64_t)shape->dims[i]);
}

void tare_hash_add_tensor(struct tare_hash *hash, const struct tare_tensor *tensor) {
    if (!tensor) {
        tare_hash_add_u64(hash, 0);
        return;
    }
    const struct tare_dtype_info *info = tare_dtype_get(tensor->dtype);
    tare_hash_add_u64(hash, (uint64_t)tensor->dtype);
    hash_add_shape(hash, &tensor->shape);
    int64_t held = tensor->splat && tensor->elements > 0 ? 1 : tensor->elements;
    tare_hash_add_u64(hash, tensor->splat);
    if (!info || info->class == TARE_CLASS_OBJECT) return;
    if (info->class == TARE_CLASS_STRING) {
        const struct tare_str *strings = tensor->data;
        for (int64_t i = 0; i < held; i++)
            tare_hash_add_bytes(hash, strings[i].data, strings[i].size);
        return;
    }
    tare_hash_add(hash, tensor->data, (size_t)held * info->size);
}

void tare_hash_add_attr(struct tare_hash *hash, const struct tare_attr *attr,
                        void (*add_function)(void *arg, struct tare_hash *hash, const struct tare_func *function),
                        void *arg) {
    tare_hash_add_text(hash, attr->name);
    tare_hash_add_u64(hash, (uint64_t)attr->kind);
    tare_hash_add_u64(hash, attr->is_list);
    tare_hash_add_u64(hash, attr->count);
    for (size_t i = 0; i < attr->count; i++) {
        const union tare_attr_item *item = &attr->items[i];
        switch (attr->kind) {
        case TARE_ATTR_NONE:
            break;
        case TARE_ATTR_STRING:
        case TARE_ATTR_PLACEHOLDER:
            tare_hash_add_bytes(hash, item->s.data, item->s.size);
            break;
        case TARE_ATTR_INT:
            tare_hash_add_u64(hash, (uint64_t)item->i);
            break;
        case TARE_ATTR_FLOAT:
            tare_hash_add_u64(hash, tare_float_bits(item->f));
            break;
        case TARE_ATTR_BOOL:
            tare_hash_add_u64(hash, item->b);
            break;
        case TARE_ATTR_TYPE:
            tare_hash_add_u64(hash, (uint64_t)item->type);
            break;
        case TARE_ATTR_SHAPE:
            hash_add_shape(hash, item->shape);
            break;
        case TARE_ATTR_TENSOR:
            tare_hash_add_tensor(hash, item->tensor);
            break;
        case TARE_ATTR_FUNC:
            add_function(arg, hash, &item->func);
            break;
        }
    }
}
