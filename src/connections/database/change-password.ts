// What POST /dbconnections/change_password takes (spec "Change password").
import { z } from 'zod';
import { normalizeEmail } from '../../records/email.ts';
import { LegacyError } from './errors.ts';

/** The answer, the same whether there is such a user, byte for byte as SDKs compare it. */
export const CONFIRMATION = "We've just sent you an email to reset your password.";

const text = (field: string) =>
  z
    .string(`invalid ${field} type (expected string)`)
    .min(1, `${field} is required`)
    .max(300, `${field} must be at most 300 characters`);

const body = z.object({
  client_id: text('client_id').optional(),
  connection: text('connection'),
  email: text('email'),
  organization: text('organization').optional(),
});

/**
 * Reads the request; a `password`, which old clients send along, is ignored.
 * @throws LegacyError 400 naming each field that is wrong.
 */
export function readChangePassword(input: unknown): z.output<typeof body> {
  const given = typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const missing = (['connection', 'email'] as const).filter((field) => present[field] === undefined);
  if (missing.length > 0) {
    throw new LegacyError(400, { error: missing.map((field) => `${field} is required`).join(', ') });
  }
  const result = body.safeParse(present);
  if (!result.success) {
    throw new LegacyError(400, { error: result.error.issues.map(({ message }) => message).join(', ') });
  }
  if (normalizeEmail(result.data.email) === undefined) {
    throw new LegacyError(400, { error: 'email format validation failed' });
  }
  return result.data;
}
