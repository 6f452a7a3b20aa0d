// Reads recorded calls of actions: arguments of a known shape, and their effect.
import { z } from 'zod';

/** The name of a claim or of a member of the metadata. */
export const memberName = z.string().min(1).max(255);
export const text = z.string().max(1000);

/** A scope token (RFC 6749 §3.3). */
export const scopeToken = z.string().regex(/^[\x21\x23-\x5B\x5D-\x7E]{1,255}$/);

/** The value of a member. What JSON cannot express is missing here, and becomes null. */
const value = z.unknown().transform((one) => one ?? null);

/** A name and a value; further arguments are ignored. */
export const nameAndValue = z.tuple([memberName, value]).rest(z.unknown());

/** @returns false for wrong arguments. */
export type ApiMethod<O> = (outcome: O, args: unknown) => boolean;

export function apiMethod<O, T extends z.ZodType>(
  schema: T,
  apply: (outcome: O, schema: z.output<T>) => void,
): ApiMethod<O> {
  return (outcome, args) => {
    const read = schema.safeParse(args);
    if (read.success) apply(outcome, read.data);
    return read.success;
  };
}

/** Sets a member, whatever its name is: an assignment to `__proto__` would change the prototype. */
export function setMember(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
