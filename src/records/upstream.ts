// What connections to upstream identity providers have in common, whatever their protocol.
import { z } from 'zod';

/** Options as they are written, without what is null: tools send null for what is not set. */
export function withoutNull(options: unknown): unknown {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options;
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}

/** When what a provider says of its users becomes what we say of them. */
export const rootAttributes = z.enum(['on_each_login', 'on_first_login', 'never_on_login']);

export type RootAttributes = z.infer<typeof rootAttributes>;

/** A parameter that is sent to the provider: fixed, or that of the authorization request with the name `alias`. */
const upstreamParameter = z.union([
  z.strictObject({ value: z.string().max(1024) }),
  z.strictObject({ alias: z.string().min(1).max(100) }),
]);

/** The options that connections of every redirecting strategy have. */
export const upstreamOptions = {
  set_user_root_attributes: rootAttributes.default('on_each_login'),
  /** Attributes of the profile that are not stored. */
  non_persistent_attrs: z.array(z.string()).max(1000).default([]),
  upstream_params: z.record(z.string().min(1).max(100), upstreamParameter).default({}),
  icon_url: z
    .string()
    .max(255)
    .refine((url) => url === '' || (URL.canParse(url) && new URL(url).protocol === 'https:'), {
      message: 'must be an https address',
    })
    .optional(),
  domain_aliases: z.array(z.string().toLowerCase()).max(1000).optional(),
};

const upstreamOptionsSchema = z.looseObject(upstreamOptions);

/** The options that connections of every redirecting strategy have, as they are meant. */
export function commonOptions(options: unknown): z.infer<typeof upstreamOptionsSchema> {
  return upstreamOptionsSchema.parse(withoutNull(options));
}

const knownRootAttributes = rootAttributes.catch('on_each_login');

/** When what is said of a connection's users elsewhere becomes what we say of them. */
export function rootAttributesOf({
  options,
}: {
  options: Readonly<Record<string, unknown>>;
}): RootAttributes {
  return knownRootAttributes.parse(options.set_user_root_attributes);
}
