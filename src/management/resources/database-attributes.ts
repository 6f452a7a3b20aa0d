// Options of a database that contradict one another, and that the hosted service refuses in these words.
import { apiError } from '../errors.ts';
import { isObject } from '../section.ts';

const refused = (message: string) => apiError(400, message, 'invalid_body');

/** @throws AuthError 400 for options of which one would have to be ignored. @param options as they are to be stored. */
export function refuseContradictions(options: Readonly<Record<string, unknown>>): void {
  refuseBothPolicies(options);
  refuseNoWayIn(options);
  const { attributes, requires_username, validation } = options;
  if (!isObject(attributes)) return;
  if (requires_username === true)
    throw refused('Cannot set both options.attributes and options.requires_username');
  if (validation !== undefined) throw refused('Cannot set both options.attributes and options.validation');
  const all = Object.entries(attributes).filter((entry): entry is [string, Record<string, unknown>] =>
    isObject(entry[1]),
  );
  const isActive = ({ identifier }: Record<string, unknown>) =>
    isObject(identifier) && identifier.active === true;
  if (!all.some(([, one]) => isActive(one))) throw refused('attributes must contain one active identifier');
  const { email } = attributes;
  // A name that several have names nobody.
  if (isObject(email) && email.unique === false && isActive(email))
    throw refused('attribute email must be unique to be an identifier');
  for (const [name, { profile_required, signup }] of all) {
    if (profile_required === true && isObject(signup) && signup.status !== 'required')
      throw refused(`attribute ${name} must also be required on signup`);
  }
}

/** The members that `password_options` stands in place of. */
export const OLDER_POLICY = [
  'passwordPolicy',
  'password_complexity_options',
  'password_history',
  'password_dictionary',
  'password_no_personal_info',
] as const;

/** Passwords can be switched off where there are codes in their place. */
function refuseNoWayIn({
  authentication_methods: methods,
  attributes,
}: Readonly<Record<string, unknown>>): void {
  if (!isObject(methods) || !isObject(methods.password) || methods.password.enabled !== false) return;
  const isOn = (name: string) => isObject(methods[name]) && methods[name].enabled === true;
  const isName = (name: string) => {
    const one = isObject(attributes) ? attributes[name] : undefined;
    return isObject(one) && isObject(one.identifier) && one.identifier.active === true;
  };
  if (isOn('email_otp') && (isName('email') || !isObject(attributes))) return;
  if (isOn('phone_otp') && isName('phone_number')) return;
  throw refused('authentication_methods.password can be disabled with email_otp or phone_otp alone');
}

function refuseBothPolicies(options: Readonly<Record<string, unknown>>): void {
  if (options.password_options == null) return;
  const older = OLDER_POLICY.find((name) => options[name] != null);
  if (older !== undefined) throw refused(`Cannot set both options.password_options and options.${older}`);
}
