import copy
import pickle
from uuid import RFC_4122, UUID

from rota.new_ids import new_id


def test_new_ids_are_uuids_of_version_seven_in_the_order_of_their_making():
    ids = [new_id() for _ in range(10_000)]

    assert len(set(ids)) == 10_000
    assert ids == sorted(ids)
    assert {(made.version, made.variant) for made in ids} == {(7, RFC_4122)}


def test_a_new_id_is_like_any_other_uuid():
    made = new_id()
    twin = UUID(str(made))

    assert (twin, hash(twin), repr(twin), twin.is_safe) == (made, hash(made), repr(made), made.is_safe)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
