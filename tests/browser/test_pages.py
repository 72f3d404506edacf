"""Every page in every light: nothing that axe-core minds, nothing that is cut off or too wide."""

import pytest
from _gallery import GALLERY
from _looks import check_looks

PICTURES = [
    pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.slow else [])
    for each in GALLERY
]


@pytest.mark.parametrize("picture", PICTURES)
def test_a_page_can_be_read_in_every_light_and_on_a_phone(visit, world, picture):
    visitor = visit(picture.token(world))
    visitor.watch.expect(*picture.statuses)
    visitor.open(picture.path)
    picture.do(visitor, world)
    check_looks(visitor)
