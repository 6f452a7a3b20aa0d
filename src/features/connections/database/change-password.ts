// The body of POST /dbconnections/change_password (docs/wire/database.md).
import { z } from 'zod';
import { normalizeEmail } from '../../../records/email.ts';
import { typeFault } from './errors.ts';

/** The response body, the same whether the user exists or not. SDKs compare it byte for byte. */
export const CONFIRMATION = "We've just sent you an email to reset your password.";

const text = (field: string) =>
  z
    .string({ error: typeFault(field) })
    .min(1, `${field} is required`)
    .max(300, `${field} must be at most 300 characters`);

/** The schema of the body. A `password`, which old clients send, is ignored. */
export const changePasswordBody = z
  .object({
    client_id: text('client_id')
      .optional()
      .describe('The application; the connection must be enabled for it.'),
    connection: text('connection').describe('The name of a database connection.'),
    email: text('email'),
    organization: text('organization').optional().describe('The organization for the link, by id or name.'),
  })
  .refine(({ email }) => normalizeEmail(email) !== undefined, {
    message: 'email format validation failed',
    path: ['email'],
  });

export type ChangePasswordBody = z.output<typeof changePasswordBody>;
