// The body of POST /dbconnections/signup (docs/reference/wire/database.md).
import { z } from 'zod';
import { typeFault } from '../base/database-errors.ts';

const MAX_METADATA_PROPERTIES = 10;
const MAX_METADATA_NAME_LENGTH = 100;
const MAX_METADATA_VALUE_LENGTH = 500;
const MAX_TEXT_LENGTH = 300;
const MAX_URL_LENGTH = 2048;

/** Counts code points: a character outside the Basic Multilingual Plane counts as one. */
const characters = (value: string) => [...value].length;

const text = (field: string) =>
  z
    .string(`invalid ${field} type (expected string)`)
    .max(MAX_TEXT_LENGTH, `${field} must be at most ${MAX_TEXT_LENGTH} characters`);
const required = (field: string) =>
  z
    .string({ error: typeFault(field) })
    .min(1, `${field} is required`)
    .max(MAX_TEXT_LENGTH, `${field} must be at most ${MAX_TEXT_LENGTH} characters`);

const picture = z
  .string('invalid picture type (expected string)')
  .max(MAX_URL_LENGTH, `picture must be at most ${MAX_URL_LENGTH} characters`)
  .refine((value) => /^https?:/i.test(value) && URL.canParse(value), 'picture must be a URI');

const metadata = z
  .record(z.string(), z.unknown(), 'invalid user_metadata type (expected object)')
  .superRefine((value, ctx) => {
    const entries = Object.entries(value);
    const fault = (message: string) => ctx.addIssue({ code: 'custom', message });
    if (entries.length > MAX_METADATA_PROPERTIES) {
      fault(`user_metadata must have at most ${MAX_METADATA_PROPERTIES} properties`);
    }
    for (const [name, content] of entries) {
      if (characters(name) > MAX_METADATA_NAME_LENGTH)
        fault(`user_metadata property names must be at most ${MAX_METADATA_NAME_LENGTH} characters`);
      if (typeof content !== 'string') fault(`invalid user_metadata.${name} type (only strings are allowed)`);
      else if (characters(content) > MAX_METADATA_VALUE_LENGTH)
        fault(`user_metadata.${name} must be at most ${MAX_METADATA_VALUE_LENGTH} characters`);
    }
  });

// docs/understand/decisions/users-linking.md#sign-up-fields-without-a-limit-in-the-contract-have-at-most-300-characters
export const signUpFields = {
  client_id: text('client_id').optional().describe('The application; the connection must be enabled for it.'),
  connection: required('connection').describe('The name of a database connection.'),
  email: required('email')
    .optional()
    .describe('The e-mail address; optional if the connection has other identifiers.'),
  password: z
    .string('password is required')
    .min(1, 'password is required')
    .max(10_000, 'password is too long')
    .optional()
    .describe('The password; optional if the connection creates users without one.'),
  username: text('username').optional().describe('The username, if the connection has usernames.'),
  phone_number: text('phone_number')
    .optional()
    .describe('The phone number in E.164, if the connection has phone numbers.'),
  given_name: text('given_name').optional(),
  family_name: text('family_name').optional(),
  name: text('name').optional(),
  nickname: text('nickname').optional(),
  picture: picture.optional(),
  user_metadata: metadata
    .optional()
    .describe(
      `At most ${MAX_METADATA_PROPERTIES} texts of at most ${MAX_METADATA_VALUE_LENGTH} characters; names of at most ${MAX_METADATA_NAME_LENGTH}.`,
    ),
};

/** The schema of the body. Its messages are those that SDKs expect. */
export const signUpBody = z.object(signUpFields).refine(
  ({ email, username, phone_number }) => [email, username, phone_number].some((one) => one !== undefined),
  // Checked even if other members are invalid: the response names all missing members.
  { path: ['email'], message: 'email is required', when: () => true },
);

export type SignUpBody = z.output<typeof signUpBody>;

const { client_id: _1, connection: _2, password: _3, ...responseFields } = signUpFields;

export const signUpAnswer = z.object({
  ...responseFields,
  _id: z.string().describe('The id of the user, without the prefix of the strategy.'),
  email_verified: z.boolean(),
  phone_verified: z.boolean().optional(),
});
