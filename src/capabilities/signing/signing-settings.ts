// Where the signing keys are.
import { z } from 'zod';
import { settingsGroup } from '../../runtime/settings-group.ts';
import { type SigningPlace, signingPlace } from './place.ts';
import { command } from './places/command.ts';
import { http } from './places/http.ts';

const local = signingPlace({
  name: 'local',
  variables: {},
  address: undefined,
  open: () => undefined,
});

// docs/understand/decisions/clients-keys.md#external-keys-are-used-through-a-program-or-a-service-not-through-a-library
/** The places that may keep the keys. */
const PLACES: readonly [SigningPlace, ...SigningPlace[]] = [local, command, http];

export interface SigningSettings {
  signing: {
    /** The name of the place. */
    place: string;
    /** The variables that the place declares, as they were read. */
    variables: Readonly<Record<string, unknown>>;
  };
}

/** @throws Error for a name that no place has */
export function placeOf({ place: name }: Pick<SigningSettings['signing'], 'place'>): SigningPlace {
  const place = PLACES.find((one) => one.name === name);
  if (place === undefined) throw new Error(`no place of signing keys is named ${name}`);
  return place;
}

interface Values {
  [variable: string]: unknown;
  SIGNING: string;
}

/** Any may be left out where another place is chosen. */
const variables = Object.fromEntries(
  PLACES.flatMap((place) =>
    Object.entries(place.variables).map(([name, form]) => [
      name,
      z.optional(form).meta({ ...z.globalRegistry.get(form) }),
    ]),
  ),
);

export const signingSettings = settingsGroup({
  variables: {
    SIGNING: z
      .enum(PLACES.map(({ name }) => name))
      .default(local.name)
      .meta({
        description:
          'where the signing keys are: `local` in the store, the others outside it; see [keys.md](../do/keys.md)',
      }),
    ...variables,
  },
  faults: ({ SIGNING: name, ...values }: Values) =>
    Object.entries(placeOf({ place: name }).variables)
      .filter(([variable, form]) => values[variable] === undefined && !z.safeParse(form, undefined).success)
      .map(([variable]) => `${variable}: required with SIGNING=${name}`),
  settings: ({ SIGNING: place, ...values }: Values): SigningSettings => {
    const names = Object.keys(placeOf({ place }).variables);
    return { signing: { place, variables: Object.fromEntries(names.map((name) => [name, values[name]])) } };
  },
});
