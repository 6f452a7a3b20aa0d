// What POST /dbconnections/signup takes (spec "Signup"), field by field.
import { z } from 'zod';
import { LegacyError } from './errors.ts';

const METADATA_PROPERTIES = 10;
const METADATA_NAME = 100;
const METADATA_VALUE = 500;
const TEXT = 300;
const URL_LENGTH = 2048;

/** Characters as the specification counts them: one outside the basic plane is one, too. */
const characters = (value: string) => [...value].length;

const text = (field: string) =>
  z
    .string(`invalid ${field} type (expected string)`)
    .max(TEXT, `${field} must be at most ${TEXT} characters`);
const required = (field: string) => text(field).min(1, `${field} is required`);

const picture = z
  .string('invalid picture type (expected string)')
  .max(URL_LENGTH, `picture must be at most ${URL_LENGTH} characters`)
  .refine((value) => /^https?:/i.test(value) && URL.canParse(value), 'picture must be a URI');

const metadata = z
  .record(z.string(), z.unknown(), 'invalid user_metadata type (expected object)')
  .superRefine((value, ctx) => {
    const entries = Object.entries(value);
    const fault = (message: string) => ctx.addIssue({ code: 'custom', message });
    if (entries.length > METADATA_PROPERTIES) {
      fault(`user_metadata must have at most ${METADATA_PROPERTIES} properties`);
    }
    for (const [name, content] of entries) {
      if (characters(name) > METADATA_NAME)
        fault(`user_metadata property names must be at most ${METADATA_NAME} characters`);
      if (typeof content !== 'string') fault(`invalid user_metadata.${name} type (only strings are allowed)`);
      else if (characters(content) > METADATA_VALUE)
        fault(`user_metadata.${name} must be at most ${METADATA_VALUE} characters`);
    }
  });

const body = z.object({
  client_id: text('client_id').optional(),
  connection: required('connection'),
  email: required('email'),
  password: z
    .string('password is required')
    .min(1, 'password is required')
    .max(10_000, 'password is too long'),
  username: text('username').optional(),
  given_name: text('given_name').optional(),
  family_name: text('family_name').optional(),
  name: text('name').optional(),
  nickname: text('nickname').optional(),
  picture: picture.optional(),
  user_metadata: metadata.optional(),
});

export type SignUpBody = z.output<typeof body>;

/**
 * Reads a sign-up request.
 * @throws LegacyError 400 naming each field that is wrong.
 */
export function readSignUp(input: unknown): SignUpBody {
  const given = typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
  // SDKs send null for what the application left out.
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const missing = (['connection', 'email', 'password'] as const).filter(
    (field) => present[field] === undefined,
  );
  const result = body.safeParse(present);
  if (result.success) return result.data;
  const faults = result.error.issues
    .filter(({ path }) => !missing.includes(path[0] as never))
    .map(({ message }) => message);
  throw new LegacyError(400, {
    error: [...missing.map((field) => `${field} is required`), ...faults].join(', '),
  });
}
