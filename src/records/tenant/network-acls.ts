// Network access control lists: which requests are allowed, blocked, redirected or only logged, by what the network says of
// their senders. A rule is in the hosted service's form.
import { z } from 'zod';
import { isAddressRange } from '../../http/addresses.ts';

/** The kind of the documents that hold them. */
export const NETWORK_ACL = 'network-acls';

/** The lists of addresses that the hosted service keeps. */
const MANAGED_LISTS = ['auth0.low_reputation', 'auth0.icloud_relay_proxy'];

/** Entries of one signal, and characters of an entry. */
const MAX_ENTRIES = 100;
const MAX_ENTRY = 255;

const entriesOf = <T extends z.ZodType>(entry: T) =>
  z
    .array(entry)
    .min(1)
    .max(MAX_ENTRIES)
    .superRefine((all, context) => {
      for (const [at, one] of all.entries()) {
        const first = all.indexOf(one);
        if (first === at) continue;
        context.addIssue({
          code: 'custom',
          message: `Array items are not unique (indexes ${first} and ${at})`,
        });
        return;
      }
    });
const text = z.string().min(1).max(MAX_ENTRY);
const ranges = entriesOf(
  text.refine(isAddressRange, 'must be an IP address or a range of addresses in CIDR notation'),
);
const texts = entriesOf(text);
const managed = texts.superRefine((names, context) => {
  const unknown = names.filter((name) => !MANAGED_LISTS.includes(name));
  if (unknown.length === 0) return;
  const allowed = `Allowed curated list names are: ${MANAGED_LISTS.join(', ')}`;
  context.addIssue({
    code: 'custom',
    message: `Invalid curated list name(s): ${unknown.join(', ')}. ${allowed}`,
  });
});

const knownSignals = z.strictObject({
  /** The client's address. */
  ipv4_cidrs: ranges.optional(),
  ipv6_cidrs: ranges.optional(),
  /** The address that connects to this server or, before it, to the domain's edge network. */
  connecting_ipv4_cidrs: ranges.optional(),
  connecting_ipv6_cidrs: ranges.optional(),
  hostnames: texts.optional(),
  /** Parts of the `User-Agent`. */
  user_agents: texts.optional(),
});

/** What the hosted service's network knows besides. */
const unknownSignals = z.strictObject({
  asns: entriesOf(z.int().min(0).max(4_294_967_295)).optional(),
  auth0_managed: managed.optional(),
  geo_country_codes: texts.optional(),
  geo_subdivision_codes: texts.optional(),
  ja3_fingerprints: texts.optional(),
  ja4_fingerprints: texts.optional(),
});

const signalsSchema = z.strictObject({ ...knownSignals.shape, ...unknownSignals.shape });

export type Signals = z.output<typeof signalsSchema>;

const actionSchema = z
  .strictObject({
    allow: z.boolean().optional(),
    block: z.boolean().optional(),
    /** Only records that the rule applies. */
    log: z.boolean().optional(),
    redirect: z.boolean().optional(),
    redirect_uri: z
      .url({ protocol: /^https?$/ })
      .max(2000)
      .optional(),
  })
  .refine(
    ({ redirect, redirect_uri: uri }) => redirect !== true || uri !== undefined,
    'Action type of `redirect` requires a `redirect_uri`',
  )
  .refine(
    ({ allow, block, log, redirect }) => [allow, block, log, redirect].includes(true),
    'must be allow, block, log or redirect',
  );

const ruleSchema = z.strictObject({
  action: actionSchema,
  /** `dcr` is the registration of applications by themselves. */
  scope: z.enum(['authentication', 'management', 'tenant', 'dcr', 'dynamic_client_registration']),
  match: signalsSchema.optional(),
  not_match: signalsSchema.optional(),
});

export const networkAclShape = {
  description: text,
  active: z.boolean(),
  priority: z.int().min(0).max(100),
  rule: ruleSchema,
};

const storedSignals = signalsSchema.loose().optional();

/**
 * A list as it is stored; `priority` may be missing and then counts as the last. Of a tenant file it keeps what is not
 * known in the rule, such as a misspelt signal: without it, the rule would apply to more requests than it says.
 */
export const networkAclSchema = z.strictObject({
  ...networkAclShape,
  priority: networkAclShape.priority.optional(),
  rule: ruleSchema.extend({ match: storedSignals, not_match: storedSignals }).loose(),
});

type Members = z.output<typeof networkAclSchema>;

export interface NetworkAcl extends Members {
  id: string;
}

/** Returns the names of what a rule has that is not known here. */
function unknownIn({ match = {}, not_match = {}, ...others }: Partial<Members['rule']> = {}): string[] {
  const beyond = (object: object, shape: object) =>
    Object.keys(object).filter(
      (name) => !Object.hasOwn(shape, name) && (object as Record<string, unknown>)[name] !== undefined,
    );
  const names = [
    ...beyond(match, knownSignals.shape),
    ...beyond(not_match, knownSignals.shape),
    ...beyond(others, ruleSchema.shape),
  ];
  return [...new Set(names)];
}

const isWithoutSignals = (signals: Signals = {}): boolean => Object.keys(signals).length === 0;

/** Returns why an active list is refused: one that names no signal would apply to every request. */
export function networkAclFault({ active, rule }: Partial<Members>): string | undefined {
  if (active !== true || rule === undefined) return undefined;
  const isForAll = isWithoutSignals(rule.match) && isWithoutSignals(rule.not_match);
  return isForAll ? 'An active network ACL needs signals in match or not_match' : undefined;
}

/** Returns why an active list applies to no request; nothing if it may. */
export function networkAclWarnings(acl: Partial<Members>): string[] {
  const { active, description, rule } = acl;
  const unknown = unknownIn(rule);
  const isForAll = networkAclFault(acl) !== undefined;
  if (active !== true || (unknown.length === 0 && !isForAll)) return [];
  const why = isForAll ? 'it has no signals' : `this server does not know ${unknown.join(', ')}`;
  return [`the network ACL "${description}" applies to no request: ${why}`];
}

interface Document {
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Returns the active lists that may apply to requests, in the order in which they are asked. */
export function networkAclsOf(documents: readonly Document[]): NetworkAcl[] {
  return documents
    .flatMap(({ id, body }) => {
      const { success, data } = networkAclSchema.safeParse(body);
      return success && data.active && networkAclWarnings(data).length === 0 ? [{ ...data, id }] : [];
    })
    .sort((a, b) => (a.priority ?? Infinity) - (b.priority ?? Infinity) || (a.id < b.id ? -1 : 1));
}
