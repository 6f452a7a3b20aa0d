// What actions of `custom-token-exchange` may ask for: the user of the token, or that the subject token is invalid.
import { z } from 'zod';
import { type ApiMethod, memberName, text } from './api-method.ts';

const attributes = z.object({
  user_id: z.union([z.string().min(1).max(255), z.int().transform(String)]),
  email: z.string().max(320).nullish(),
  email_verified: z.boolean().nullish(),
  username: z.string().max(128).nullish(),
  phone_number: z.string().max(32).nullish(),
  phone_verified: z.boolean().nullish(),
  name: z.string().max(300).nullish(),
  given_name: z.string().max(150).nullish(),
  family_name: z.string().max(150).nullish(),
  nickname: z.string().max(300).nullish(),
  picture: z.string().max(2048).nullish(),
  verify_email: z.boolean().nullish(),
});

export type ExchangedAttributes = z.output<typeof attributes>;

const options = z.object({
  creationBehavior: z.enum(['create_if_not_exists', 'none']),
  updateBehavior: z.enum(['replace', 'none']),
});

/** A user of a connection, who may be created or updated. */
export interface UserOfConnection extends z.output<typeof options> {
  /** The connection's name. */
  connection: string;
  attributes: ExchangedAttributes;
}

/** An actor and its claims, with the earlier actors in `act` (RFC 8693 §4.1). */
export interface Actor {
  readonly [member: string]: string | number | boolean | Actor;
}

export interface ExchangeOutcome {
  /** The users that the actions named, in order. The exchange is valid only where there is exactly one. */
  users: ({ id: string } | UserOfConnection)[];
  /** An id or a name. */
  organization?: string;
  actor?: Actor;
  /** The subject token is invalid. Such attempts are counted. */
  isInvalid?: boolean;
}

interface WithExchangeOutcome {
  exchange: ExchangeOutcome;
  denied?: { code?: string; reason: string };
}

const setUserById: ApiMethod<WithExchangeOutcome> = ({ exchange }, args) => {
  const [id] = z.tuple([memberName]).rest(z.unknown()).safeParse(args).data ?? [];
  if (id !== undefined) exchange.users.push({ id });
  return id !== undefined;
};

const setUserByConnection: ApiMethod<WithExchangeOutcome> = ({ exchange }, args) => {
  const parsed = z.tuple([memberName, attributes, options]).rest(z.unknown()).safeParse(args);
  if (!parsed.success) return false;
  const [connection, userAttributes, behavior] = parsed.data;
  exchange.users.push({ connection, attributes: userAttributes, ...behavior });
  return true;
};

const setOrganization: ApiMethod<WithExchangeOutcome> = ({ exchange }, args) => {
  const [organization] = z.tuple([memberName]).rest(z.unknown()).safeParse(args).data ?? [];
  if (organization !== undefined) exchange.organization = organization;
  return organization !== undefined;
};

/** Longest chain of actors, and how many claims each may have beside `sub`. */
const MAX = { actors: 5, members: 5 };

const actorClaim = z.union([text, z.number(), z.boolean()]);
const actorSchema = (levels: number): z.ZodType<Actor> =>
  z
    .object({ sub: memberName, ...(levels > 1 && { act: z.lazy(() => actorSchema(levels - 1)).optional() }) })
    .catchall(actorClaim)
    .refine(({ sub: _sub, act: _act, ...claims }) => Object.keys(claims).length <= MAX.members)
    .transform((one) => one as Actor);

const setActor: ApiMethod<WithExchangeOutcome> = ({ exchange }, args) => {
  const parsed = z
    .tuple([actorSchema(MAX.actors)])
    .rest(z.unknown())
    .safeParse(args);
  if (parsed.success) exchange.actor = parsed.data[0];
  return parsed.success;
};

const rejectToken: ApiMethod<WithExchangeOutcome> = (outcome, args) => {
  const parsed = z.tuple([text]).rest(z.unknown()).safeParse(args);
  if (!parsed.success) return false;
  outcome.denied ??= { code: 'invalid_request', reason: parsed.data[0] };
  outcome.exchange.isInvalid = true;
  return true;
};

/** The methods of `custom-token-exchange`, by name. */
export const EXCHANGE_METHODS = {
  'access.rejectInvalidSubjectToken': rejectToken,
  'authentication.setUserById': setUserById,
  'authentication.setUserByConnection': setUserByConnection,
  'authentication.setOrganization': setOrganization,
  'authentication.setActor': setActor,
} satisfies Record<string, ApiMethod<WithExchangeOutcome>>;
