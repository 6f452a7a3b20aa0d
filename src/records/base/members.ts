// The members of an object whose form a value of a list declares, such as the target of a log stream, and who may see
// each of them.
import { z } from 'zod';

type Exposure = 'open' | 'secret' | 'hidden';

export interface Member<T extends z.ZodType = z.ZodType, E extends Exposure = Exposure> {
  schema: T;
  exposure: E;
  /** The path of the secret within the member, if only a part of it is one. */
  part: string;
}

/** A member that everybody may see who may read the object. */
export const open = <T extends z.ZodType>(schema: T): Member<T, 'open'> => ({
  schema,
  exposure: 'open',
  part: '',
});

/**
 * A secret: stored encrypted, and masked on pages and in the log. The Management API returns it, as the hosted
 * service's does. Its name has to be one that `isNamedSecret` knows.
 * @param part the path of the secret within the member, such as `.secret`; default: the member.
 */
export const secret = <T extends z.ZodType>(schema: T, part = ''): Member<T, 'secret'> => ({
  schema,
  exposure: 'secret',
  part,
});

/**
 * A secret that the Management API does not return either. Tools that change what they have read leave it out, and it
 * is kept then: what sends it must not send it to an address that such a change can name.
 */
export const hidden = <T extends z.ZodType>(schema: T): Member<T, 'hidden'> => ({
  schema,
  exposure: 'hidden',
  part: '',
});

export type Members = Readonly<Record<string, Member>>;
type Shape<M extends Members> = { [Name in keyof M]: M[Name]['schema'] };
/** The object with these members, as it is read. */
export type ValuesOf<M extends Members> = z.output<z.ZodObject<Shape<M>>>;

export const shapeOf = <M extends Members>(members: M): Shape<M> =>
  Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema])) as Shape<M>;

/** Returns the shape of an object that may have the members of any of several values of a list. */
export function jointShape(all: readonly Members[]): Record<string, z.ZodType> {
  const names = [...new Set(all.flatMap((members) => Object.keys(members)))];
  return Object.fromEntries(
    names.map((name) => {
      const schemas = new Set(all.flatMap((members) => members[name]?.schema ?? []));
      return [name, [...schemas].reduce((first, second) => z.union([first, second])).optional()];
    }),
  );
}

/** Returns the paths of the members, or of their parts, that are stored encrypted. */
export const secretPaths = (all: readonly Members[]): string[] =>
  pathsOf(all, ({ exposure }) => exposure !== 'open');

/** Returns the names of the members that the Management API does not return. */
export const hiddenNames = (all: readonly Members[]): string[] =>
  pathsOf(all, ({ exposure }) => exposure === 'hidden');

const pathsOf = (all: readonly Members[], isIncluded: (member: Member) => boolean): string[] => [
  ...new Set(
    all.flatMap((members) =>
      Object.entries(members).flatMap(([name, member]) => (isIncluded(member) ? [name + member.part] : [])),
    ),
  ),
];
