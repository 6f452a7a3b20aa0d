// Refuses database options that contradict one another, with the messages of the hosted service.
import { apiError } from '../../management-errors.ts';
import { isObject } from '../../section.ts';

const invalidBody = (message: string) => apiError(400, message, 'invalid_body');

/**
 * Refuses options of which one would have to be ignored.
 * @param options as they would be stored.
 * @throws AuthError 400
 */
export function refuseContradictions(options: Options): void {
  refuseBothPolicies(options);
  const { attributes, requires_username, validation } = options;
  if (!isObject(attributes)) return;
  if (requires_username === true)
    throw invalidBody('Cannot set both options.attributes and options.requires_username');
  if (validation !== undefined)
    throw invalidBody('Cannot set both options.attributes and options.validation');
  const all = Object.entries(attributes).filter((entry): entry is [string, Record<string, unknown>] =>
    isObject(entry[1]),
  );
  if (!all.some(([, one]) => isIdentifier(one)))
    throw invalidBody('attributes must contain one active identifier');
  for (const [name, { profile_required, signup }] of all) {
    if (profile_required === true && isObject(signup) && signup.status !== 'required')
      throw invalidBody(`attribute ${name} must also be required on signup`);
  }
}

const isIdentifier = (attribute: unknown) =>
  isObject(attribute) && isObject(attribute.identifier) && attribute.identifier.active === true;

/**
 * Refuses to make e-mail addresses non-unique later: the addresses of existing users were recorded as unique, and
 * would stay so.
 * @param before the current options.
 * @param options those that would be stored.
 * @throws AuthError 400
 */
export function refuseLateNonUnique(before: Options, options: Options): void {
  if (mayShareEmail(options) && !mayShareEmail(before))
    throw invalidBody('cannot add non-unique email attribute');
}

type Options = Readonly<Record<string, unknown>>;

const mayShareEmail = ({ attributes }: Options) =>
  isObject(attributes) && isObject(attributes.email) && attributes.email.unique === false;

/** The options that `password_options` replaces. */
export const OLDER_POLICY = [
  'passwordPolicy',
  'password_complexity_options',
  'password_history',
  'password_dictionary',
  'password_no_personal_info',
] as const;

function refuseBothPolicies(options: Readonly<Record<string, unknown>>): void {
  if (options.password_options == null) return;
  const older = OLDER_POLICY.find((name) => options[name] != null);
  if (older !== undefined) throw invalidBody(`Cannot set both options.password_options and options.${older}`);
}
