// How what actions recorded is read: arguments of a known shape, and what becomes of them.
import { z } from 'zod';

/** The name of a claim, of a member of the metadata … */
export const name = z.string().min(1).max(255);
export const text = z.string().max(1000);

/** RFC 6749 §3.3. */
export const scopeToken = z.string().regex(/^[\x21\x23-\x5B\x5D-\x7E]{1,255}$/);

/** The value of a member; what cannot be written as JSON was left out on the way here. */
const value = z.unknown().transform((one) => one ?? null);

/** A name and a value; what is given beside is not looked at. */
export const pair = z.tuple([name, value]).rest(z.unknown());

/** Takes the arguments of a method. @returns false for others than it takes. */
export type Take<O> = (outcome: O, given: unknown) => boolean;

/** A method: what it is called with, and what becomes of that. */
export function taking<O, T extends z.ZodType>(
  args: T,
  apply: (outcome: O, args: z.output<T>) => void,
): Take<O> {
  return (outcome, given) => {
    const read = args.safeParse(given);
    if (read.success) apply(outcome, read.data);
    return read.success;
  };
}

/** Sets a member, whatever its name is. */
export function setMember(of: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(of, key, { value, enumerable: true, configurable: true, writable: true });
}
