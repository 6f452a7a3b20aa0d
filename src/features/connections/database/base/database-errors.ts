// Errors of /dbconnections/* in their older shapes, which SDKs and login widgets (docs/reference/wire/database.md)
// branch on by `name` and `code`.
import type { Context } from 'koa';
import { z } from 'zod';
import { AuthError, type ErrorShape } from '../../../../http/errors.ts';
import type { Connection } from '../../../../records/collections.ts';
import type { AddressKind } from '../../../../records/connections/identities.ts';
import { policyText } from '../../../../users/password-policy.ts';
import { RegistrationRefused } from '../../../../users/registration.ts';
import type { SignUpRefusal } from '../../../../users/signup.ts';

interface LegacyBody {
  error?: string;
  name?: string;
  code?: string;
  message?: string;
  description?: unknown;
  policy?: string;
  friendly_message?: string;
  statusCode?: number;
}

/** A failure whose body is not the OAuth one (RFC 6749 §5.2). */
export class LegacyError extends AuthError {
  readonly body: LegacyBody;

  constructor(status: number, body: LegacyBody) {
    super(status, body.error ?? body.code ?? 'invalid_request', body.message ?? '');
    this.body = body;
  }
}

/** Writes the failures of /dbconnections/* in the shapes of their API. */
export const legacyShape: ErrorShape = (ctx: Context, error: AuthError): void => {
  const failure = error instanceof RegistrationRefused ? extensibilityError(error) : error;
  const { status, body } = failure instanceof LegacyError ? failure : legacyOf(failure);
  ctx.status = status;
  const sentence = body.description ?? body.error;
  // Clients that do not know this API's shapes read the member of RFC 6749 §5.2. A weak password has rules, no sentence.
  // docs/understand/decisions/users-linking.md#errors-of-dbconnections-have-error_description-too
  ctx.body = typeof sentence === 'string' ? { ...body, error_description: sentence } : body;
};

legacyShape.schema = {
  name: 'DatabaseError',
  body: z.object({
    error: z.string().optional(),
    name: z.string().optional(),
    code: z.string().optional().describe('The code that SDKs and login widgets read.'),
    message: z.string().optional(),
    description: z
      .unknown()
      .describe('A sentence; for a weak password the rules, and which of them it meets.'),
    error_description: z.string().optional().describe('The same sentence.'),
    policy: z.string().optional(),
    friendly_message: z
      .string()
      .optional()
      .describe("The text of the tenant's own code, if that refused the sign-up."),
    statusCode: z.number().optional(),
  }),
};

legacyShape.invalid = (faults) => {
  const fieldFaults = faults.filter(({ field }) => field !== undefined);
  const [missing, wrong] = [
    fieldFaults.filter(({ value }) => value === undefined),
    fieldFaults.filter(({ value }) => value !== undefined),
  ];
  return new LegacyError(400, { error: [...missing, ...wrong].map(({ message }) => message).join(', ') });
};

/** Returns the message for a field that is missing or not a string. */
export function typeFault(field: string) {
  return ({ input }: { input?: unknown }) =>
    input === undefined ? `${field} is required` : `invalid ${field} type (expected string)`;
}

function legacyOf({ status, error, error_description }: AuthError): LegacyError {
  // Some SDKs read `error`, others `code` and `description`.
  return new LegacyError(status, { error, code: error, description: error_description, statusCode: status });
}

/** Returns the error for a sign-up that the tenant's own code refuses. Login widgets show `friendly_message`. */
function extensibilityError({ error_description: message }: RegistrationRefused): LegacyError {
  return new LegacyError(400, {
    name: 'AuthError',
    code: 'extensibility_error',
    message,
    description: message,
    friendly_message: message,
    statusCode: 400,
  });
}

const badRequest = (code: string, description: string) =>
  new LegacyError(400, { name: 'BadRequestError', code, description, statusCode: 400 });
const passwordError = (name: string, message: string, extra: LegacyBody = {}) =>
  new LegacyError(400, {
    name,
    code: 'invalid_password',
    message,
    description: message,
    ...extra,
    statusCode: 400,
  });

/** @param revealsUsers whether the response may say that an address is taken (a flag of the tenant). */
export function signUpError(
  refusal: SignUpRefusal,
  connection: Connection,
  revealsUsers: boolean,
): LegacyError {
  switch (refusal.reason) {
    case 'signup-disabled':
      return new LegacyError(400, { error: 'public signup is disabled' });
    case 'invalid-email':
      return new LegacyError(400, { error: 'email format validation failed' });
    case 'invalid-phone':
      return new LegacyError(400, { error: 'phone_number format validation failed' });
    case 'missing-password':
      return new LegacyError(400, { error: 'password is required' });
    case 'missing-address':
      return new LegacyError(400, { error: missingText(refusal.kind, connection) });
    case 'unexpected-address':
      return new LegacyError(400, {
        error: `${refusal.kind} is not allowed for the ${connection.name} connection`,
      });
    case 'invalid-username':
      return new LegacyError(400, {
        error: `invalid username: ${refusal.min} to ${refusal.max} letters, digits and _+-.!#$^\`~@', and no e-mail address`,
      });
    case 'weak-password':
      return passwordError('PasswordStrengthError', 'Password is too weak', {
        description: refusal.verdict,
        policy: policyText(refusal.verdict),
      });
    case 'common-password':
      return passwordError('PasswordDictionaryError', 'Password is too common');
    case 'personal-password':
      return passwordError('PasswordNoUserInfoError', 'Password contains user information');
    case 'taken':
      if (!revealsUsers) return badRequest('invalid_signup', 'Invalid sign up');
      return refusal.key === 'username'
        ? badRequest('username_exists', 'The username provided is in use already.')
        : badRequest('user_exists', 'The user already exists.');
  }
}

function missingText(kind: AddressKind, { name, options }: Connection): string {
  if (options.attributes == null && kind === 'username')
    return `missing username for ${name} connection with requires_username enabled`;
  return `${kind} is required`;
}
