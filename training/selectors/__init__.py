"""Selection policies, one module each: tables in, plan out."""
