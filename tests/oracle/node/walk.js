// Walks through every call of the vendor's Node SDK for tables and rows, and reports each step as a line of JSON.
//
//     node walk.js walk -endpoint=URL -instance=NAME -key-id=ID -key-secret=SECRET

'use strict';

const assert = require('assert');
const ots = require('tablestore');

const { Long, INF_MIN, INF_MAX, PK_AUTO_INCR } = ots;
const IGNORE = new ots.Condition(ots.RowExistenceExpectation.IGNORE, null);
const WORDS = / is not available in this emulator: see /;

const flags = Object.fromEntries(process.argv.slice(3).map((flag) => {
  const [name, ...value] = flag.replace(/^-+/, '').split('=');
  return [name, value.join('=')];
}));

const client = new ots.Client({
  endpoint: flags.endpoint,
  instancename: flags.instance,
  accessKeyId: flags['key-id'],
  secretAccessKey: flags['key-secret'],
  maxRetries: 2,
});
const calls = new Set();

const call = async (name, params) => {
  const data = await client[name](params);
  calls.add(name);
  return data;
};

const refused = (code, message, name, params) => async () => {
  let error;
  try {
    await client[name](params);
  } catch (caught) {
    error = caught;
  }
  assert(error, `succeeded, wanted ${code} ${message}`);
  const text = String(error.message);
  assert(text.includes(code) && (message instanceof RegExp ? message.test(text) : text.includes(message)), text);
};

const steps = [];
const step = (name, body) => steps.push([name, body]);

const table = (tableName, keys, more = {}) => ({
  tableMeta: { tableName, primaryKey: keys },
  reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
  tableOptions: { timeToLive: -1, maxVersions: 1 },
  ...more,
});
const number = (value) => (Long.isLong && Long.isLong(value) ? value.toNumber() : Number(value));
const plain = (value) => (typeof value === 'object' && value !== null && !Buffer.isBuffer(value) ? number(value) : value);
const key = (row) => row.primaryKey.map((column) => plain(column.value));
const cells = (row) => Object.fromEntries(row.attributes.map((cell) => [cell.columnName, plain(cell.columnValue)]));
const at = (name, k, n) => ({ tableName: name, primaryKey: [{ k }, { n: Long.fromNumber(n) }] });
const put = (name, k, n, columns) => call('putRow', {
  ...at(name, k, n), condition: IGNORE, attributeColumns: columns, returnContent: { returnType: ots.ReturnType.Primarykey },
});
const read = async (name, k, n, more = {}) => (await call('getRow', { ...at(name, k, n), maxVersions: 1, ...more })).row;
const update = (name, k, n, changes, more = {}) => call('updateRow', {
  ...at(name, k, n), condition: IGNORE, updateOfAttributeColumns: changes, ...more,
});
const range = (name, from, to, more = {}) => call('getRange', {
  tableName: name,
  direction: ots.Direction.FORWARD,
  maxVersions: 1,
  inclusiveStartPrimaryKey: from,
  exclusiveEndPrimaryKey: to,
  ...more,
});
const ALL = [[{ k: INF_MIN }, { n: INF_MIN }], [{ k: INF_MAX }, { n: INF_MAX }]];

// Tables

step('tables/create', () => call('createTable', table('plain', [{ name: 'k', type: 'STRING' }, { name: 'n', type: 'INTEGER' }])));
step('tables/create with an automatic key', () => call('createTable', table('numbered', [
  { name: 'k', type: 'STRING' }, { name: 'n', type: 'INTEGER', option: 'AUTO_INCREMENT' },
])));
step('tables/list', async () => assert.deepStrictEqual((await call('listTable', {})).tableNames, ['numbered', 'plain']));
step('tables/describe', async () => {
  const described = await call('describeTable', { tableName: 'plain' });
  assert.deepStrictEqual(described.tableMeta.primaryKey.map((column) => column.name), ['k', 'n']);
});
step('tables/update', () => call('updateTable', { tableName: 'plain', tableOptions: { maxVersions: 5 } }));
step('tables/again', refused('OTSObjectAlreadyExist', 'Requested table already exists.', 'createTable',
  table('plain', [{ name: 'k', type: 'STRING' }])));
step('tables/no table', refused('OTSObjectNotExist', 'Requested table does not exist.', 'describeTable', { tableName: 'none' }));

// Rows

step('rows/put', async () => {
  const put1 = await put('plain', 'a', 1, [{ s: 'text \u8868' }, { d: 1.5 }, { i: Long.fromNumber(7) }, { t: true }]);
  assert.deepStrictEqual(key(put1.row), ['a', 1]);
  assert.strictEqual(put1.consumed.capacityUnit.write, 1);
});
step('rows/get', async () => assert.deepStrictEqual(cells(await read('plain', 'a', 1)),
  { d: 1.5, i: 7, s: 'text \u8868', t: true }));
step('rows/get nothing', async () => assert.deepStrictEqual(Object.keys(await read('plain', 'none', 1) || {}), []));
step('rows/update with puts and deletions', async () => {
  await update('plain', 'a', 1, [{ PUT: [{ s: 'new' }] }, { DELETE_ALL: ['d', 't'] }]);
  assert.deepStrictEqual(cells(await read('plain', 'a', 1)), { i: 7, s: 'new' });
});
step('rows/an update that only deletes creates nothing', async () => {
  await update('plain', 'gone', 1, [{ DELETE_ALL: ['d', 'e', 'f'] }]);
  assert.deepStrictEqual(Object.keys(await read('plain', 'gone', 1) || {}), []);
});
step('rows/increment', async () => {
  await update('plain', 'a', 1, [{ INCREMENT: [{ i: Long.fromNumber(5) }] }]);
  assert.strictEqual(cells(await read('plain', 'a', 1)).i, 12);
});
step('rows/a condition that fails', refused('OTSConditionCheckFail', 'Condition check failed.', 'putRow', {
  ...at('plain', 'a', 1),
  condition: new ots.Condition(ots.RowExistenceExpectation.EXPECT_NOT_EXIST, null),
  attributeColumns: [{ s: 'x' }],
}));
step('rows/a column condition', async () => {
  const condition = new ots.Condition(ots.RowExistenceExpectation.IGNORE,
    new ots.SingleColumnCondition('s', 'new', ots.ComparatorType.EQUAL, true));
  await call('updateRow', { ...at('plain', 'a', 1), condition, updateOfAttributeColumns: [{ PUT: [{ s: 'newer' }] }] });
  assert.strictEqual(cells(await read('plain', 'a', 1)).s, 'newer');
});
step('rows/a filter', async () => {
  const columnFilter = new ots.SingleColumnCondition('s', 'other', ots.ComparatorType.EQUAL, true);
  assert.deepStrictEqual(Object.keys(await read('plain', 'a', 1, { columnFilter }) || {}), []);
});
step('rows/delete', async () => {
  await put('plain', 'b', 1, [{ s: 'x' }]);
  await call('deleteRow', { ...at('plain', 'b', 1), condition: IGNORE });
  assert.deepStrictEqual(Object.keys(await read('plain', 'b', 1) || {}), []);
});
step('rows/an automatic key', async () => {
  const params = {
    tableName: 'numbered',
    condition: IGNORE,
    primaryKey: [{ k: 'a' }, { n: PK_AUTO_INCR }],
    attributeColumns: [{ s: 'x' }],
    returnContent: { returnType: ots.ReturnType.Primarykey },
  };
  const first = key((await call('putRow', params)).row);
  const second = key((await call('putRow', params)).row);
  assert(second[1] > first[1], `${first} before ${second}`);
});

// Ranges

step('ranges/fill', async () => {
  for (let n = 1; n <= 5; n += 1) {
    await put('plain', 'r', n, [{ v: Long.fromNumber(n) }]);
  }
});
step('ranges/everything, from the least to the greatest key', async () => {
  const { rows, nextStartPrimaryKey } = await range('plain', ...ALL);
  assert.deepStrictEqual(rows.map(key), [['a', 1], ...[1, 2, 3, 4, 5].map((n) => ['r', n])]);
  assert(!nextStartPrimaryKey);
});
step('ranges/backward', async () => {
  const { rows } = await range('plain', ALL[1], ALL[0], { direction: ots.Direction.BACKWARD, limit: 2 });
  assert.deepStrictEqual(rows.map(key), [['r', 5], ['r', 4]]);
});
step('ranges/one partition key in pages', async () => {
  const found = [];
  let from = [{ k: 'r' }, { n: INF_MIN }];
  while (from) {
    const { rows, nextStartPrimaryKey: next } = await range('plain', from, [{ k: 'r' }, { n: INF_MAX }], { limit: 2 });
    found.push(...rows.map((row) => cells(row).v));
    from = next && next.map((column) => ({ [column.name]: column.value }));
  }
  assert.deepStrictEqual(found, [1, 2, 3, 4, 5]);
});
step('ranges/in the wrong direction', refused('OTSParameterInvalid', 'Begin key must less than end key in FORWARD', 'getRange', {
  tableName: 'plain',
  direction: ots.Direction.FORWARD,
  maxVersions: 1,
  inclusiveStartPrimaryKey: ALL[1],
  exclusiveEndPrimaryKey: ALL[0],
}));

// Batches

step('batches/write', async () => {
  const rows = [
    { type: 'PUT', ...at('plain', 'w', 1), condition: IGNORE, attributeColumns: [{ v: 'x' }] },
    { type: 'UPDATE', ...at('plain', 'w', 2), condition: IGNORE, attributeColumns: [{ PUT: [{ v: 'y' }] }] },
    { type: 'DELETE', ...at('plain', 'r', 5), condition: IGNORE },
  ].map(({ tableName, ...row }) => row);
  const { tables } = await call('batchWriteRow', { tables: [{ tableName: 'plain', rows }] });
  assert.deepStrictEqual(tables.map((row) => row.isOk), [true, true, true]);
});
step('batches/read, with one key twice', async () => {
  const primaryKey = [['w', 1], ['w', 2], ['w', 1], ['r', 5]].map(([k, n]) => at('', k, n).primaryKey);
  const { tables } = await call('batchGetRow', { tables: [{ tableName: 'plain', primaryKey, maxVersions: 1 }] });
  assert.deepStrictEqual(tables[0].map((row) => row.isOk), [true, true, true, true]);
  assert.deepStrictEqual(tables[0].slice(0, 3).map((row) => cells(row).v), ['x', 'y', 'x']);
});

// Transactions

const start = async () => (await call('startLocalTransaction', { tableName: 'plain', primaryKey: [{ k: 'tx' }] })).transactionId;
step('transactions/commit', async () => {
  const transactionId = await start();
  await call('putRow', { ...at('plain', 'tx', 1), condition: IGNORE, attributeColumns: [{ v: 'x' }], transactionId });
  assert.deepStrictEqual(Object.keys(await read('plain', 'tx', 1) || {}), []);
  await call('commitTransaction', { transactionId });
  assert.strictEqual(cells(await read('plain', 'tx', 1)).v, 'x');
});
step('transactions/abort', async () => {
  const transactionId = await start();
  // The SDK reads the answer as if it were a request, and so fails on every answer of the service.
  await assert.rejects(client.abortTransaction({ transactionId }), /missing required 'transactionId'/);
  calls.add('abortTransaction');
  await refused('OTSSessionNotExist', 'Session not exist or may be timeout.', 'commitTransaction', { transactionId })();
});
step('transactions/a malformed id', refused('OTSParameterInvalid', 'TransactionID is invalid.', 'commitTransaction',
  { transactionId: 'none' }));

// What is missing

for (const [name, params] of [
  ['listSearchIndex', { tableName: 'plain' }],
  ['describeSearchIndex', { tableName: 'plain', indexName: 'i' }],
  ['deleteSearchIndex', { tableName: 'plain', indexName: 'i' }],
  ['dropIndex', { mainTableName: 'plain', indexName: 'i' }],
  ['computeSplits', { tableName: 'plain', searchIndexSplitsOptions: { indexName: 'i' } }],
  ['sqlQuery', { query: 'select 1' }],
]) {
  step(`out-of-scope/${name}`, refused('OTSParameterInvalid', WORDS, name, params));
}
step('end/delete a table', () => call('deleteTable', { tableName: 'numbered' }));

const walk = async () => {
  for (const [name, body] of steps) {
    try {
      await body();
      console.log(JSON.stringify({ step: name, ok: true }));
    } catch (error) {
      console.log(JSON.stringify({ step: name, ok: false, detail: String(error && error.stack || error) }));
    }
  }
  console.log(JSON.stringify({ calls: [...calls].sort() }));
};

walk();
