// What actions of `custom-token-exchange` may ask for: the user of the token, or that the subject token is invalid.
import { z } from 'zod';
import { name, type Take, text } from './taking.ts';

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

/** A user as an action describes them. */
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

export interface ExchangeAsked {
  /** The users that the actions named, in order. The exchange is valid only where there is exactly one. */
  users: ({ id: string } | UserOfConnection)[];
  /** An id or a name. */
  organization?: string;
  /** The actor of the token. */
  actor?: Actor;
  /** The subject token is invalid. Such attempts are counted. */
  isInvalid?: boolean;
}

interface WithExchange {
  exchange: ExchangeAsked;
  denied?: { code?: string; reason: string };
}

const byId: Take<WithExchange> = ({ exchange }, given) => {
  const [id] = z.tuple([name]).rest(z.unknown()).safeParse(given).data ?? [];
  if (id !== undefined) exchange.users.push({ id });
  return id !== undefined;
};

const byConnection: Take<WithExchange> = ({ exchange }, given) => {
  const read = z.tuple([name, attributes, options]).rest(z.unknown()).safeParse(given);
  if (!read.success) return false;
  const [connection, attributesOf, how] = read.data;
  exchange.users.push({ connection, attributes: attributesOf, ...how });
  return true;
};

const inOrganization: Take<WithExchange> = ({ exchange }, given) => {
  const [organization] = z.tuple([name]).rest(z.unknown()).safeParse(given).data ?? [];
  if (organization !== undefined) exchange.organization = organization;
  return organization !== undefined;
};

/** Longest chain of actors, and how many claims each may have beside `sub`. */
const MOST = { actors: 5, members: 5 };

const said = z.union([text, z.number(), z.boolean()]);
const actor = (levels: number): z.ZodType<Actor> =>
  z
    .object({ sub: name, ...(levels > 1 && { act: z.lazy(() => actor(levels - 1)).optional() }) })
    .catchall(said)
    .refine(({ sub: _sub, act: _act, ...others }) => Object.keys(others).length <= MOST.members)
    .transform((one) => one as Actor);

const withActor: Take<WithExchange> = ({ exchange }, given) => {
  const read = z
    .tuple([actor(MOST.actors)])
    .rest(z.unknown())
    .safeParse(given);
  if (read.success) exchange.actor = read.data[0];
  return read.success;
};

const rejectToken: Take<WithExchange> = (outcome, given) => {
  const read = z.tuple([text]).rest(z.unknown()).safeParse(given);
  if (!read.success) return false;
  outcome.denied ??= { code: 'invalid_request', reason: read.data[0] };
  outcome.exchange.isInvalid = true;
  return true;
};

/** The methods of `custom-token-exchange`, by name. */
export const EXCHANGE_TAKE = {
  'access.rejectInvalidSubjectToken': rejectToken,
  'authentication.setUserById': byId,
  'authentication.setUserByConnection': byConnection,
  'authentication.setOrganization': inOrganization,
  'authentication.setActor': withActor,
} satisfies Record<string, Take<WithExchange>>;
