// Second factors by message: a code is sent to an address or number of the user.

import { declarePage } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { countryOf } from '../../../http/languages.ts';
import { requiredField, textField } from '../../../http/server/body.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import { DeliveryError } from '../../../records/base/message-transport.ts';
import { codeKinds } from '../../../records/database-options.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import type { Config } from '../../../tenant/config.ts';
import { isByAddress } from '../../../users/changes.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { type Authenticator, type FactorFields, singleId } from '../authenticators.ts';
import type { FactorRequest } from '../claimant.ts';
import {
  challengeView,
  enrollmentView,
  type Factor,
  type FactorDependencies,
  type FactorModel,
  type FactorPages,
  MFA_CODE_PAGE,
  type OwnModel,
  type StartedEnrollment,
} from '../factor.ts';
import { factorLimits } from '../factors-declaration.ts';
import { CODE_SECONDS, prepareCode } from '../out-of-band.ts';
import { digitsOf } from '../verify.ts';
import { oobGrant, verifyOob } from '../verify-oob.ts';
import { countries, numberOf } from './countries.ts';

/** The form that asks for an address or number. */
interface AddressForm {
  address: string;
  /** For a number: the countries to choose from, and the chosen one. */
  countries?: { code: string; calling: string; name: string }[];
  country?: string;
}

export const MFA_ENROLL_ADDRESS_PAGE = declarePage<FactorModel & AddressForm & { channel: string }>(
  'mfa/enroll-address',
);

/** What differs between the channels. */
interface MessageChannel
  extends Pick<Factor, 'strength' | 'nameOf' | 'ofProfile'>,
    Required<Pick<NonNullable<Factor['enroll']>, 'requestedAs' | 'addressOf'>> {
  /** The channel, which is also the kind of its authenticators. */
  channel: 'sms' | 'email';
  message: 'mfa_sms' | 'mfa_oob_code';
  /** Returns the address or number that messages are sent to. */
  destinationOf(authenticator: Authenticator): string | undefined;
  /** @throws AuthError 400 when it is invalid. */
  fieldsOf(address: string): FactorFields;
  formAddressOf: NonNullable<FactorPages['addressOf']>;
  form: (...args: Parameters<OwnModel<string | undefined, AddressForm>>) => AddressForm;
}

function messageFactor(definition: MessageChannel): Factor {
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
      enrollment: enrollmentView(MFA_ENROLL_ADDRESS_PAGE, (...page) => ({
        channel,
        ...definition.form(...page),
      })),
      challenge: challengeView(MFA_CODE_PAGE, () => ({ channel })),
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

/** @returns the challenge's `oob_code`. @throws AuthError 400, 429, 503 */
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

// E-mail as a second factor.

export const email = messageFactor({
  channel: 'email',
  strength: 1,
  message: 'mfa_oob_code',
  // SDKs also send `email` as an authenticator type.
  requestedAs: ['oob', 'email'],
  addressOf: (fields, user) => textField(fields, 'email') ?? user.email ?? '',
  destinationOf: (authenticator) => authenticator.email,
  nameOf: (authenticator) => authenticator.email && masked(authenticator.email),
  ofProfile,
  fieldsOf: (address) => {
    const normalized = normalizeEmail(address);
    if (normalized !== undefined) return { email: normalized };
    throw new AuthError(400, 'invalid_request', 'email must be an e-mail address.');
  },
  formAddressOf: (address) => address,
  form: (_deps, _ctx, { claimant: { user } }, address = user.email ?? '') => ({ address }),
});

// docs/understand/decisions/second-factors.md#the-verified-e-mail-address-of-the-profile-is-an-authenticator
/**
 * Returns the verified address of the user's profile as an authenticator. Returns undefined when the user can log
 * in with a code or link to that address, because that would be one factor used twice.
 */
async function ofProfile(
  { users, config }: { users: Pick<Users, 'identitiesOf'>; config: Pick<Config, 'connection'> },
  user: User,
): Promise<Authenticator | undefined> {
  if (user.email === undefined || !user.email_verified) return undefined;
  const identities = await users.identitiesOf(user.id);
  if (isByAddress(identities, ['email'])) return undefined;
  const connections = await Promise.all(identities.map(({ connection }) => config.connection(connection)));
  if (connections.some((one) => one !== undefined && codeKinds(one).includes('email'))) return undefined;
  return {
    id: singleId(email.prefix, user.id),
    user_id: user.id,
    kind: email.kind,
    active: true,
    email: user.email,
    created_at: user.created_at,
  };
}

function masked(address: string): string {
  const [local = '', domain = ''] = address.split('@');
  return `${local.slice(0, 1)}${'*'.repeat(Math.max(3, local.length - 1))}@${domain.slice(0, 4)}${'*'.repeat(Math.max(3, domain.length - 4))}`;
}

// Text messages as a second factor.

export const sms = messageFactor({
  channel: 'sms',
  strength: 2,
  message: 'mfa_sms',
  requestedAs: ['oob'],
  addressOf: (fields) => requiredField(fields, 'phone_number'),
  destinationOf: (authenticator) => authenticator.phone_number,
  nameOf: ({ phone_number: phone }) =>
    phone && `${'X'.repeat(Math.max(0, phone.length - 5))}${phone.slice(-4)}`,
  fieldsOf: (address) => {
    const phoneNumber = numberOf(address);
    if (phoneNumber !== undefined) return { phone_number: phoneNumber };
    throw new AuthError(400, 'invalid_phone_number', 'phone_number must be a phone number in E.164 format.');
  },
  formAddressOf: (address, country) => numberOf(address, country) ?? address,
  // Country names are in the page's language. The country that the browser's languages suggest is selected.
  form: ({ views }, ctx, { uiLocales }, address = '') => {
    const all = countries(views.locale(ctx, uiLocales).tag);
    const likely = countryOf([ctx.get('Accept-Language')]);
    return { address, countries: all, country: all.some(({ code }) => code === likely) ? likely : 'US' };
  },
});
