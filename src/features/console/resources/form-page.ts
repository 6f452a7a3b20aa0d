// The form for creating or changing a record, and the page that shows what a change changes.

import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import { sha256 } from '../../../runtime/secrets.ts';
import type { CallRules } from '../../management/call.ts';
import { isObject } from '../../management/section.ts';
import type { ConsoleSession } from '../console-page.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type Field, fieldsOf, queryFieldsOf, WHOLE, WHOLE_FIELD } from './console-resource-fields.ts';
import { HIDDEN, hasSecrets, maskSecrets, maskUnchanged } from './console-resource-secrets.ts';
import { groupOf, isNameMember, type Operation, type Place, parametersOf, titleOf } from './declared.ts';
import type { FormFaults } from './faults.ts';
import {
  crumbsOf,
  type Link,
  labelOf,
  type Places,
  paramsOf,
  type ResourcesDependencies,
  recordAt,
  sectionOf,
  translated,
} from './model.ts';
import { isHarmless, operationPath, pageOf } from './operations.ts';
import { type FilledField, filledFields, type Posted } from './values.ts';

export interface PlaceOperation {
  places: Places;
  place: Place;
  operation: Operation;
  call: CallRules;
}

/** An operation with the current record and the fields of its form. */
export interface OperationForm extends PlaceOperation {
  /** The members of the current record that the call accepts; undefined for a new one. */
  record: unknown;
  fields: readonly Field[];
  queryFields: readonly Field[];
  /** Whether the record is edited as a whole, as JSON. */
  isJson: boolean;
}

/** Prefix of the field names of query parameters, which distinguishes them from the body's. */
const QUERY = '?';

/** Reports whether an operation changes an existing record, so that only differences are sent. */
export const isChange = ({ operation, call }: Pick<PlaceOperation, 'operation' | 'call'>): boolean =>
  call.body !== undefined && (operation === 'change' || operation === 'replace');

/** @throws AuthError 404 */
export async function operationForm(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  target: PlaceOperation,
  asJson: boolean,
): Promise<OperationForm> {
  const { call } = target;
  const isJson = asJson && isChange(target);
  const record = isChange(target) ? await recordAt(deps, ctx, session, target) : undefined;
  const fields = call.body === undefined ? [] : fieldsOf(call.body);
  const queryFields = call.query === undefined ? [] : queryFieldsOf(call.query);
  return {
    ...target,
    record: changeable(record, fields),
    fields: isJson ? [WHOLE_FIELD] : fields,
    queryFields: queryFields.map((field) => ({ ...field, path: `${QUERY}${field.path}` })),
    isJson,
  };
}

/** Returns the members of a record that a call accepts. */
function changeable(record: unknown, fields: readonly Field[]): unknown {
  if (!isObject(record) || fields.length === 0 || fields[0]?.path === WHOLE) return record;
  const names = new Set(fields.map(({ name }) => name));
  return Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)));
}

/** Returns a digest of a record, from which a form detects that the record was changed meanwhile. */
export const digestOf = (record: unknown): string => sha256(JSON.stringify(record ?? null));

/** What the form and its review have in common. */
interface FormFrame {
  heading: string;
  group: string;
  label: string;
  crumbs: Link[];
  at: string;
  /** The digest of the record that the form was made from. */
  seen: string;
}

function frameModel({ places, place, operation, call, record }: OperationForm, ctx: Context): FormFrame {
  const params = paramsOf(ctx);
  return {
    heading: call.summary,
    group: groupOf(place.path),
    label: labelOf(record, params[parametersOf(place.path).at(-1) ?? ''] ?? ''),
    crumbs: crumbsOf(places, `${place.path}/:end`, params),
    at: operationPath(operation, place.path, params),
    seen: digestOf(record),
  };
}

interface ResourcesFormModel extends FormFrame {
  isChange: boolean;
  /** Whether the body is entered as JSON. */
  isJson: boolean;
  isHarmless: boolean;
  hasJson: boolean;
  /** Faults that belong to no field. */
  general: string[];
  faulty: FilledField | undefined;
  cancel: string | undefined;
  fields: readonly FilledField[];
  /** Fields that are folded away. */
  further?: readonly FilledField[];
}

export const RESOURCES_FORM_PAGE = declareConsolePage<ResourcesFormModel>('console/resources-form');

interface FormState {
  faults?: FormFaults;
  posted?: Posted | undefined;
  status?: number;
}

export async function renderForm(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  form: OperationForm,
  { faults = { at: {}, general: [] }, posted, status = 200 }: FormState = {},
): Promise<void> {
  const { place, call, record, fields, queryFields, isJson } = form;
  const filling = { posted, faults: faults.at };
  const filled = [
    ...filledFields(queryFields, {}, { ...filling, isNew: true }),
    ...filledFields(fields, record, { ...filling, isNew: !isChange(form) }),
  ];
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_FORM_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'doing', call.summary),
    model: {
      ...frameModel(form, ctx),
      isChange: isChange(form),
      isJson,
      isHarmless: isHarmless(place),
      hasJson: isChange(form) && call.body !== undefined,
      general: faults.general,
      faulty: firstFaulty(filled),
      ...splitFields(filled),
      cancel: place.read === undefined ? undefined : pageOf(place.path, paramsOf(ctx)),
    },
    status,
  });
}

/** Returns the first faulty field in the order of the page. */
function firstFaulty(fields: readonly FilledField[]): FilledField | undefined {
  return fields.flatMap((field) =>
    field.fault === undefined ? (firstFaulty(field.fields ?? []) ?? []) : field,
  )[0];
}

/**
 * Separates fields that are filled, required, faulty or name the record from all others, which are shown below them.
 */
function splitFields(all: readonly FilledField[]) {
  const isFirst = ({ name, isRequired, isFilled, fault }: FilledField) =>
    isRequired || isFilled || fault !== undefined || isNameMember(name);
  const first = all.filter(isFirst);
  // Without any such field all are shown at once.
  return first.length === 0
    ? { fields: all }
    : { fields: first, further: all.filter((one) => !isFirst(one)) };
}

interface ResourcesReviewModel extends FormFrame {
  cancel: string;
  changes: Difference[];
  body: string;
}

export const RESOURCES_REVIEW_PAGE = declareConsolePage<ResourcesReviewModel>('console/resources-review');

/** Shows what a change changes, to be confirmed. @param body the body that is sent after that. */
export async function renderReview(
  deps: ResourcesDependencies,
  ctx: Context,
  session: ConsoleSession,
  form: OperationForm,
  body: unknown,
): Promise<void> {
  const { place, call, record, isJson } = form;
  const name = titleOf(place.path);
  const frame = frameModel(form, ctx);
  await renderConsole(deps, ctx, session, {
    page: RESOURCES_REVIEW_PAGE,
    section: sectionOf(place),
    title: translated(deps, ctx, 'doing', call.summary),
    model: {
      ...frame,
      cancel: `${frame.at}${isJson ? '?as=json' : ''}`,
      changes:
        isObject(body) && (record === undefined || isObject(record))
          ? differences(record ?? {}, body)
          : differences({ [name]: record }, { [name]: body }),
      body: JSON.stringify(maskUnchanged(body, record)),
    },
  });
}

// Compares a record with a change of it, member by member.

interface Difference {
  /** The path of the member: `jwt_configuration.alg`. */
  path: string;
  /** JSON with secrets masked; undefined when the member did not exist. */
  before: string | undefined;
  /** Undefined when the member is removed. */
  after: string | undefined;
}

/** @param after the members that are sent; null removes one. */
function differences(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: readonly string[] = [],
): Difference[] {
  return Object.entries(after).flatMap(([name, value]) => {
    const at = [...path, name];
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isDeepStrictEqual(old, value) || (old === undefined && value === null)) return [];
    if (isObject(old) && isObject(value)) return differences(old, withAbsent(old, value), at);
    return [{ path: at.join('.'), ...shownPair(name, old, value) }];
  });
}

/**
 * Returns the new object with undefined for members that it no longer has: a nested object is replaced as a whole.
 */
const withAbsent = (before: object, after: Record<string, unknown>): Record<string, unknown> => ({
  ...Object.fromEntries(Object.keys(before).map((name) => [name, undefined])),
  ...after,
});

function shownPair(name: string, before: unknown, after: unknown): Pick<Difference, 'before' | 'after'> {
  const shown = (value: unknown) =>
    value === undefined || value === null ? undefined : textOf(maskSecrets(value, name));
  const isSecret = hasSecrets({ [name]: before }) || hasSecrets({ [name]: after });
  const pair = { before: shown(before), after: shown(after) };
  // Two masked secrets look the same, so a mark shows that the secret changes.
  return isSecret && pair.before === pair.after && pair.after === HIDDEN
    ? { ...pair, after: `${HIDDEN} *` }
    : pair;
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);
