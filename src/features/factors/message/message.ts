// Second factors by message: a code is sent to an address or number of the user.
import { DeliveryError } from '../../../capabilities/delivery/messages.ts';
import { AuthError } from '../../../http/errors.ts';
import { SECOND_FACTORS } from '../../../records/second-factors.ts';
import type { Authenticator, FactorFields } from '../authenticators.ts';
import type { FactorRequest } from '../claimant.ts';
import { factorLimits } from '../declaration.ts';
import type { Factor, FactorDependencies, FactorPages, StartedEnrollment } from '../factor.ts';
import { CODE_SECONDS, prepareCode } from '../out-of-band.ts';
import { digitsOf } from '../verify.ts';
import { oobGrant, verifyOob } from '../verify-oob.ts';

/** What differs between the channels. */
interface MessageChannel
  extends Pick<Factor, 'strength' | 'nameOf' | 'ofProfile'>,
    Required<Pick<NonNullable<Factor['enroll']>, 'requestedAs' | 'addressOf'>> {
  /** The channel, which is also the kind of its authenticators. */
  channel: 'sms' | 'email';
  /** The message that carries the code. */
  message: 'mfa_sms' | 'mfa_oob_code';
  /** Returns the address or number that messages are sent to. */
  destinationOf(authenticator: Authenticator): string | undefined;
  /** Returns what is stored of an address. @throws AuthError 400 when it is invalid. */
  fieldsOf(address: string): FactorFields;
  /** Returns the address of the form's fields. */
  formAddressOf: NonNullable<FactorPages['addressOf']>;
  /** Returns the model of the form that asks for the address. */
  form: NonNullable<FactorPages['enrollment']>['model'];
}

/** Returns the factor of a message channel. */
export function messageFactor(definition: MessageChannel): Factor {
  const { channel, strength, nameOf, ofProfile } = definition;
  const factor: Factor = {
    ...SECOND_FACTORS[channel],
    authenticatorType: 'oob',
    channel: () => channel,
    isMessage: true,
    strength,
    ...(nameOf && { nameOf }),
    ...(ofProfile && { ofProfile }),
    enroll: {
      requestedAs: definition.requestedAs,
      addressOf: definition.addressOf,
      start: (deps, request, address) => startEnrollment(deps, definition, factor, request, address),
    },
    challenge: async (deps, request, authenticator) => {
      return { oobCode: await sendCode(deps, definition, request, authenticator), prompt: true };
    },
    verify: (deps, claimant, { code, oobCode }) => verifyOob(deps, claimant, oobCode, digitsOf(code)),
    grant: oobGrant,
    pages: {
      typesCode: true,
      addressOf: definition.formAddressOf,
      enrollment: {
        template: 'mfa/enroll-address',
        model: (...page) => ({ channel, ...definition.form(...page) }),
      },
      challenge: { template: 'mfa/code', model: () => ({ channel }) },
    },
  };
  return factor;
}

/** Begins an authenticator and sends its first code. If the code cannot be sent, the authenticator is removed. */
async function startEnrollment(
  deps: FactorDependencies,
  definition: MessageChannel,
  factor: Factor,
  request: FactorRequest,
  address: string,
): Promise<StartedEnrollment> {
  const fields = definition.fieldsOf(address);
  const by = { userId: request.user.id, credentialVersion: request.credentialVersion };
  const authenticator = await deps.authenticators.startEnrollment(by, factor, () => fields);
  try {
    return { authenticator, oobCode: await sendCode(deps, definition, request, authenticator), prompt: true };
  } catch (thrown) {
    await deps.authenticators.remove(authenticator.id);
    throw thrown;
  }
}

/**
 * Sends a code to an authenticator.
 * @returns the challenge's `oob_code`.
 * @throws AuthError 400, 429, 503
 */
async function sendCode(
  deps: FactorDependencies,
  { channel, message, destinationOf }: MessageChannel,
  { user, clientId, ip, languages }: FactorRequest,
  authenticator: Authenticator,
): Promise<string> {
  const to = destinationOf(authenticator) ?? '';
  if (!(await deps.rateLimits.spend(factorLimits.mfaMessage, user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  // A confirmed address is the user's own. What others had sent there must not use up its limit.
  if (!authenticator.active) await deps.limitDestination(`${channel}\n${to}`);
  const application = await deps.config.client(clientId);
  const { oobCode, code, ref, save } = prepareCode(deps, { authenticator, clientId, ip });
  const notice = { to, application, user, code, languages, ip, isEnrollment: !authenticator.active };
  const prepared = deps.messages.prepare(message, notice, { ref, ttlSeconds: CODE_SECONDS });
  await save([prepared.write]);
  try {
    await prepared.send();
    return oobCode;
  } catch (thrown) {
    throw thrown instanceof DeliveryError ? refusalOf(thrown) : thrown;
  }
}

function refusalOf(cause: DeliveryError): AuthError {
  if (cause.code === 'invalid-number')
    return new AuthError(400, 'invalid_phone_number', cause.message, { cause });
  const text = 'The message could not be sent. Try again in a few minutes.';
  return new AuthError(503, 'temporarily_unavailable', text, { cause });
}
